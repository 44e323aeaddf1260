/* The dictionary for who is inside: over ranks that are open already. */
#ifndef PEN_DDICT_DICTIONARY_H
#define PEN_DDICT_DICTIONARY_H

#include "base/opt.h"
#include "comm/comm.h"

extern const struct pen_opt pen__ddict_opts[];
/* As pen_ddict_open(); comm NULL: of this machine. */
int pen__ddict_open(struct pen_ddict **out, struct pen_comm *comm,
		    const char *const *settings, uint32_t n,
		    struct pen_err *err);

/*
 * pen_ddict_put_many() in two steps: begin() sends what other machines get and
 * returns; keys, values and their bytes stay as they are until end(), which
 * waits. *out NULL: it is over, and begin() says what came of it.
 */
struct pen_puts;
int pen__ddict_put_begin(struct pen_ddict *, const struct pen_key *,
			 const struct pen_value *, uint64_t n,
			 struct pen_puts **out, struct pen_err *err);
bool pen__puts_landed(struct pen_puts *); /* end() need not wait for answers */
int pen__puts_end(struct pen_puts *, struct pen_err *err); /* frees */

#endif
