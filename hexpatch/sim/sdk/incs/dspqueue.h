// Packet queues between host and DSP: a message and references to shared buffers.
#ifndef DSPQUEUE_H
#define DSPQUEUE_H

#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

// libggml-hexagon.so exports the host's names itself, and both sides live in one process.
#ifdef __hexagon__
#define dspqueue_import                     sim_dsp_dspqueue_import
#define dspqueue_close                      sim_dsp_dspqueue_close
#define dspqueue_write                      sim_dsp_dspqueue_write
#define dspqueue_write_noblock              sim_dsp_dspqueue_write_noblock
#define dspqueue_read                       sim_dsp_dspqueue_read
#define dspqueue_read_noblock               sim_dsp_dspqueue_read_noblock
#define dspqueue_peek                       sim_dsp_dspqueue_peek
#define dspqueue_peek_noblock               sim_dsp_dspqueue_peek_noblock
#define dspqueue_write_early_wakeup_noblock sim_dsp_dspqueue_write_early_wakeup_noblock
#endif

struct dspqueue;
typedef struct dspqueue * dspqueue_t;

struct dspqueue_buffer {
    uint32_t fd;
    uint32_t size;
    uint32_t offset;
    uint32_t flags;
    union {
        void *   ptr;
        uint64_t address;
    };
};

#define DSPQUEUE_BUFFER_FLAG_REF                  1
#define DSPQUEUE_BUFFER_FLAG_DEREF                2
#define DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER         4
#define DSPQUEUE_BUFFER_FLAG_INVALIDATE_SENDER    8
#define DSPQUEUE_BUFFER_FLAG_FLUSH_RECIPIENT      16
#define DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT 32

#define DSPQUEUE_TIMEOUT_NONE 0xffffffffu

typedef void (*dspqueue_callback_t)(dspqueue_t queue, AEEResult error, void * context);

#ifndef __hexagon__
AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                          dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                          void * callback_context, dspqueue_t * queue);
AEEResult dspqueue_export(dspqueue_t queue, uint64_t * queue_id);
#else
AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback,
                          dspqueue_callback_t error_callback, void * callback_context, dspqueue_t * queue);
AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags);
#endif
AEEResult dspqueue_close(dspqueue_t queue);

AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t num_buffers, struct dspqueue_buffer * buffers,
                         uint32_t message_length, const uint8_t * message, uint32_t timeout_us);
AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                 struct dspqueue_buffer * buffers, uint32_t message_length,
                                 const uint8_t * message);
AEEResult dspqueue_read(dspqueue_t queue, uint32_t * flags, uint32_t max_buffers, uint32_t * num_buffers,
                        struct dspqueue_buffer * buffers, uint32_t max_message_length,
                        uint32_t * message_length, uint8_t * message, uint32_t timeout_us);
AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t * flags, uint32_t max_buffers, uint32_t * num_buffers,
                                struct dspqueue_buffer * buffers, uint32_t max_message_length,
                                uint32_t * message_length, uint8_t * message);
AEEResult dspqueue_peek(dspqueue_t queue, uint32_t * flags, uint32_t * num_buffers, uint32_t * message_length,
                        uint32_t timeout_us);
AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t * flags, uint32_t * num_buffers,
                                uint32_t * message_length);

#ifdef __cplusplus
}
#endif

#endif
