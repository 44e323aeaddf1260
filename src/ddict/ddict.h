/* The dictionary for who is inside: over ranks that are open already. */
#ifndef PEN_DDICT_DDICT_H
#define PEN_DDICT_DDICT_H

#include "base/opt.h"
#include "comm/comm.h"

struct pen_ranks {
	struct pen_comm *comm;
	uint64_t pid; /* that opened it: a forked child has no ranks */
};

extern const struct pen_opt pen__ddict_opts[];
/* As pen_ddict_open(); comm NULL: of this machine. */
int pen__ddict_open(struct pen_ddict **out, struct pen_comm *comm,
		    const char *const *settings, uint32_t n,
		    struct pen_err *err);

#endif
