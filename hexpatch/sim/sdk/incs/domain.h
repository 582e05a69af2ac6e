// The DSPs a host program may name.
#ifndef DOMAIN_H
#define DOMAIN_H

#include "remote.h"

static domain supported_domains[] = {
    { CDSP_DOMAIN_ID,  (char *) CDSP_DOMAIN  },
    { CDSP1_DOMAIN_ID, (char *) CDSP1_DOMAIN },
};

#endif
