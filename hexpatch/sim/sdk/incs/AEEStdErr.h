// Result codes. Both sides are compiled against this file; the numbers are the public SDK's where
// known, and nothing depends on them.
#ifndef AEESTDERR_H
#define AEESTDERR_H

#include "stddef/AEEStdDef.h"

#define AEE_EOFFSET 0

#define AEE_SUCCESS              0
#define AEE_EUNKNOWN             -1
#define AEE_EFAILED              (AEE_EOFFSET + 0x001)
#define AEE_ENOMEMORY            (AEE_EOFFSET + 0x002)
#define AEE_ECLASSNOTSUPPORT     (AEE_EOFFSET + 0x003)
#define AEE_EVERSIONNOTSUPPORT   (AEE_EOFFSET + 0x004)
#define AEE_EALREADYLOADED       (AEE_EOFFSET + 0x005)
#define AEE_EUNABLETOLOAD        (AEE_EOFFSET + 0x006)
#define AEE_EUNABLETOUNLOAD      (AEE_EOFFSET + 0x007)
#define AEE_EEXPIRED             (AEE_EOFFSET + 0x00C)
#define AEE_EBADSTATE            (AEE_EOFFSET + 0x00D)
#define AEE_EBADPARM             (AEE_EOFFSET + 0x00E)
#define AEE_EBADITEM             (AEE_EOFFSET + 0x010)
#define AEE_EUNSUPPORTED         (AEE_EOFFSET + 0x014)
#define AEE_ERESOURCENOTFOUND    (AEE_EOFFSET + 0x016)
#define AEE_EALREADY             (AEE_EOFFSET + 0x01A)
#define AEE_EITEMBUSY            (AEE_EOFFSET + 0x020)
#define AEE_EBUFFERTOOSMALL      (AEE_EOFFSET + 0x026)
#define AEE_ENOSUCH              (AEE_EOFFSET + 0x027)
#define AEE_EINVALIDITEM         (AEE_EOFFSET + 0x02A)
#define AEE_ENOTALLOWED          (AEE_EOFFSET + 0x02B)
#define AEE_EINVHANDLE           (AEE_EOFFSET + 0x02C)
#define AEE_EINTERRUPTED         (AEE_EOFFSET + 0x02E)
#define AEE_ENOMORE              (AEE_EOFFSET + 0x02F)
#define AEE_EUNSUPPORTEDAPI      (AEE_EOFFSET + 0x041)
#define AEE_ERPC                 (AEE_EOFFSET + 0x200)
#define AEE_EWOULDBLOCK          (AEE_EOFFSET + 0x204)
#define AEE_EQURTTHREADCREATE    (AEE_EOFFSET + 0x302)

#endif
