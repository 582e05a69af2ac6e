// Included by upstream; nothing of it is used.
#ifndef HAP_PS_H
#define HAP_PS_H
#endif
