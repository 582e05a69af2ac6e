// Packet queues. One queue is two rings (requests, responses); host and DSP each have an end.
// Buffer references are translated by fd: a pointer is only good on the side that gets it.
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "AEEStdErr.h"
#include "dspqueue.h"

// The DSP's names, as dspqueue.h gives them to DSP code.
#define DSP(name) sim_dsp_dspqueue_##name

#define MAX_BUFFERS 64

struct packet {
    struct packet *        next;
    uint32_t               flags, n_buffers, length;
    struct dspqueue_buffer buffers[MAX_BUFFERS];
    uint8_t                message[];
};

struct ring {
    struct packet * first, ** last;
    size_t          used, size;  // bytes
};

struct shared {
    pthread_mutex_t      lock;
    pthread_cond_t       change;
    struct sim_session * session;
    struct ring          ring[2];  // 0: to the DSP, 1: to the host
    bool                 closed[2];
    uint64_t             id;
    int                  ends;
    struct shared *      link;
};

// One end. The callback thread serves packet_callback.
struct dspqueue {
    struct shared *     q;
    int                 side;  // reads from ring[side]: DSP 0, host 1
    dspqueue_callback_t on_packet;
    void *              context;
    unsigned            dsp_thread;
    pthread_t           host_thread;
    bool                threaded, stop;
};

static struct shared * queues;
static uint64_t        next_id = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct timespec deadline(uint32_t timeout_us) {
    const uint64_t ns = sim_now_ns() + (uint64_t) timeout_us * 1000;
    return (struct timespec) { (time_t) (ns / 1000000000u), (long) (ns % 1000000000u) };
}

// Wait for a change; false when the time is up. timeout 0 never waits.
static bool wait_change(struct shared * q, uint32_t timeout_us, const struct timespec * until) {
    if (!timeout_us) {
        return false;
    }
    if (timeout_us == DSPQUEUE_TIMEOUT_NONE) {
        pthread_cond_wait(&q->change, &q->lock);
        return true;
    }
    return pthread_cond_timedwait(&q->change, &q->lock, until) != ETIMEDOUT;
}

// Where the other side finds a buffer.
static AEEResult translate(struct sim_session * s, int to, struct dspqueue_buffer * b) {
    struct sim_block block;
    size_t           size = 0;
    uint64_t         base = 0;
    if (b->flags & DSPQUEUE_BUFFER_FLAG_DEREF && !b->size) {
        return AEE_SUCCESS;
    }
    if (to == 0) {
        base = sim_session_fd_base(s, (int) b->fd, &size);
    } else if (sim_block_by_fd((int) b->fd, &block)) {
        base = (uint64_t) (uintptr_t) block.host;
        size = block.size;
    }
    if (!base || b->offset > size || b->size > size - b->offset) {
        sim_log("dspqueue: buffer fd %u offset %u size %u is not mapped", b->fd, b->offset, b->size);
        return AEE_EBADPARM;
    }
    b->address = base + b->offset;
    return AEE_SUCCESS;
}

static AEEResult write_packet(dspqueue_t e, uint32_t flags, uint32_t n, struct dspqueue_buffer * buffers,
                              uint32_t length, const uint8_t * message, uint32_t timeout_us) {
    if (!e || n > MAX_BUFFERS || (n && !buffers) || (length && !message)) {
        return AEE_EBADPARM;
    }
    struct shared * q = e->q;
    struct ring *   r = &q->ring[!e->side];
    struct packet * p = calloc(1, sizeof(*p) + length);
    if (!p) {
        return AEE_ENOMEMORY;
    }
    p->flags     = flags;
    p->n_buffers = n;
    p->length    = length;
    if (length) {
        memcpy(p->message, message, length);
    }
    AEEResult err = AEE_SUCCESS;
    for (uint32_t i = 0; i < n && !err; i++) {
        p->buffers[i] = buffers[i];
        err           = translate(q->session, !e->side, &p->buffers[i]);
    }
    const size_t          cost  = 16 + n * 24 + ((length + 7) & ~7u);
    const struct timespec until = deadline(timeout_us);
    pthread_mutex_lock(&q->lock);
    if (!err && cost > r->size) {
        err = AEE_EBADPARM;
    }
    while (!err && r->used + cost > r->size) {
        if (q->closed[!e->side]) {
            err = AEE_EBADSTATE;
        } else if (!wait_change(q, timeout_us, &until)) {
            err = timeout_us ? AEE_EEXPIRED : AEE_EWOULDBLOCK;
        }
    }
    if (!err) {
        *r->last = p;
        r->last  = &p->next;
        r->used += cost;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
    if (err) {
        free(p);
    }
    return err;
}

// read and peek: peek (take = false) leaves the packet where it is.
static AEEResult read_packet(dspqueue_t e, bool take, uint32_t * flags, uint32_t max_n, uint32_t * n,
                             struct dspqueue_buffer * buffers, uint32_t max_length, uint32_t * length,
                             uint8_t * message, uint32_t timeout_us) {
    if (!e) {
        return AEE_EBADPARM;
    }
    struct shared *       q     = e->q;
    struct ring *         r     = &q->ring[e->side];
    const struct timespec until = deadline(timeout_us);
    AEEResult             err   = AEE_SUCCESS;
    pthread_mutex_lock(&q->lock);
    while (!r->first && !err) {
        if (q->closed[e->side]) {
            err = AEE_EBADSTATE;
        } else if (!wait_change(q, timeout_us, &until)) {
            err = timeout_us ? AEE_EEXPIRED : AEE_EWOULDBLOCK;
        }
    }
    struct packet * p = r->first;
    if (!err) {
        if (flags) {
            *flags = p->flags;
        }
        if (n) {
            *n = p->n_buffers;
        }
        if (length) {
            *length = p->length;
        }
        if (take && (p->n_buffers > max_n || p->length > max_length)) {
            err = AEE_EBADPARM;  // too small; the packet stays
        }
    }
    if (take && !err) {
        if (p->n_buffers) {
            memcpy(buffers, p->buffers, p->n_buffers * sizeof(*buffers));
        }
        if (p->length) {
            memcpy(message, p->message, p->length);
        }
        r->first = p->next;
        if (!r->first) {
            r->last = &r->first;
        }
        r->used -= 16 + p->n_buffers * 24 + ((p->length + 7) & ~7u);
        pthread_cond_broadcast(&q->change);
        free(p);
    }
    pthread_mutex_unlock(&q->lock);
    return err;
}

// Calls on_packet as long as there are packets; the callback reads them.
static void serve(void * arg) {
    struct dspqueue * e = arg;
    struct shared *   q = e->q;
    pthread_mutex_lock(&q->lock);
    while (!e->stop) {
        if (!q->ring[e->side].first) {
            pthread_cond_wait(&q->change, &q->lock);
            continue;
        }
        pthread_mutex_unlock(&q->lock);
        e->on_packet(e, AEE_SUCCESS, e->context);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
}

static void * serve_host(void * arg) {
    serve(arg);
    return NULL;
}

static dspqueue_t open_end(struct shared * q, int side, dspqueue_callback_t on_packet, void * context) {
    struct dspqueue * e = calloc(1, sizeof(*e));
    if (!e) {
        return NULL;
    }
    *e = (struct dspqueue) { .q = q, .side = side, .on_packet = on_packet, .context = context };
    if (on_packet) {
        if (side == 0) {
            e->dsp_thread = sim_thread_start(q->session, "dspqueue", 192, 0, serve, e);
            e->threaded   = e->dsp_thread != 0;
        } else {
            e->threaded = !pthread_create(&e->host_thread, NULL, serve_host, e);
        }
        if (!e->threaded) {
            free(e);
            return NULL;
        }
    }
    pthread_mutex_lock(&q->lock);
    q->ends++;
    pthread_mutex_unlock(&q->lock);
    return e;
}

static AEEResult close_end(dspqueue_t e) {
    if (!e) {
        return AEE_EBADPARM;
    }
    struct shared * q = e->q;
    pthread_mutex_lock(&q->lock);
    e->stop           = true;
    q->closed[e->side] = true;   // nobody reads here any more
    q->closed[!e->side] = true;  // nor writes there
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    if (e->threaded && e->side == 0) {
        sim_thread_join(e->dsp_thread, NULL);
    } else if (e->threaded) {
        pthread_join(e->host_thread, NULL);
    }
    free(e);
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&q->lock);
    const bool last = --q->ends == 0;
    pthread_mutex_unlock(&q->lock);
    if (last) {
        struct shared ** p = &queues;
        while (*p != q) {
            p = &(*p)->link;
        }
        *p = q->link;
        for (int i = 0; i < 2; i++) {
            while (q->ring[i].first) {
                struct packet * n = q->ring[i].first->next;
                free(q->ring[i].first);
                q->ring[i].first = n;
            }
        }
        free(q);
    }
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

// -- host ---------------------------------------------------------------------------------------

SIM_API AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                                  dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                                  void * callback_context, dspqueue_t * queue) {
    struct sim_session * s = sim_session_by_domain(domain);
    (void) flags, (void) error_callback;
    if (!s || !queue) {
        return AEE_EBADPARM;
    }
    struct shared * q = calloc(1, sizeof(*q));
    if (!q) {
        return AEE_ENOMEMORY;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->change, &attr);
    pthread_mutex_init(&q->lock, NULL);
    q->session      = s;
    q->ring[0].last = &q->ring[0].first;
    q->ring[1].last = &q->ring[1].first;
    q->ring[0].size = req_queue_size ? req_queue_size : 65536;
    q->ring[1].size = resp_queue_size ? resp_queue_size : 16384;
    pthread_mutex_lock(&lock);
    q->id   = next_id++;
    q->link = queues;
    queues  = q;
    pthread_mutex_unlock(&lock);
    *queue = open_end(q, 1, packet_callback, callback_context);
    return *queue ? AEE_SUCCESS : AEE_ENOMEMORY;
}

SIM_API AEEResult dspqueue_export(dspqueue_t queue, uint64_t * queue_id) {
    if (!queue || !queue_id) {
        return AEE_EBADPARM;
    }
    *queue_id = queue->q->id;
    return AEE_SUCCESS;
}

SIM_API AEEResult dspqueue_close(dspqueue_t queue) {
    return close_end(queue);
}

SIM_API AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                 struct dspqueue_buffer * buffers, uint32_t message_length, const uint8_t * message,
                                 uint32_t timeout_us) {
    return write_packet(queue, flags, num_buffers, buffers, message_length, message, timeout_us);
}

SIM_API AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                         struct dspqueue_buffer * buffers, uint32_t message_length,
                                         const uint8_t * message) {
    return write_packet(queue, flags, num_buffers, buffers, message_length, message, 0);
}

SIM_API AEEResult dspqueue_read(dspqueue_t queue, uint32_t * flags, uint32_t max_buffers, uint32_t * num_buffers,
                                struct dspqueue_buffer * buffers, uint32_t max_message_length,
                                uint32_t * message_length, uint8_t * message, uint32_t timeout_us) {
    return read_packet(queue, true, flags, max_buffers, num_buffers, buffers, max_message_length, message_length,
                       message, timeout_us);
}

SIM_API AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t * flags, uint32_t max_buffers,
                                        uint32_t * num_buffers, struct dspqueue_buffer * buffers,
                                        uint32_t max_message_length, uint32_t * message_length, uint8_t * message) {
    return read_packet(queue, true, flags, max_buffers, num_buffers, buffers, max_message_length, message_length,
                       message, 0);
}

SIM_API AEEResult dspqueue_peek(dspqueue_t queue, uint32_t * flags, uint32_t * num_buffers, uint32_t * message_length,
                                uint32_t timeout_us) {
    return read_packet(queue, false, flags, 0, num_buffers, NULL, 0, message_length, NULL, timeout_us);
}

SIM_API AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t * flags, uint32_t * num_buffers,
                                        uint32_t * message_length) {
    return read_packet(queue, false, flags, 0, num_buffers, NULL, 0, message_length, NULL, 0);
}

// -- DSP ----------------------------------------------------------------------------------------

SIM_API AEEResult DSP(import)(uint64_t queue_id, dspqueue_callback_t packet_callback,
                              dspqueue_callback_t error_callback, void * callback_context, dspqueue_t * queue) {
    (void) error_callback;
    pthread_mutex_lock(&lock);
    struct shared * q = queues;
    while (q && q->id != queue_id) {
        q = q->link;
    }
    pthread_mutex_unlock(&lock);
    if (!q || !queue) {
        return AEE_ENOSUCH;
    }
    *queue = open_end(q, 0, packet_callback, callback_context);
    return *queue ? AEE_SUCCESS : AEE_ENOMEMORY;
}

// An end knows its side: the rest is the host's code under the DSP's names.
#define SAME(name) \
    extern SIM_API __typeof__(dspqueue_##name) DSP(name) __attribute__((alias("dspqueue_" #name)))

SAME(close);
SAME(write);
SAME(write_noblock);
SAME(read);
SAME(read_noblock);
SAME(peek);
SAME(peek_noblock);

// Wakes a sleeping host early; this host doesn't need it.
SIM_API AEEResult DSP(write_early_wakeup_noblock)(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags) {
    (void) wakeup_delay, (void) packet_flags;
    return queue ? AEE_SUCCESS : AEE_EBADPARM;
}
