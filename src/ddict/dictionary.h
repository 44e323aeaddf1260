/* Internal interface of the dictionary, over ranks that are already open. */
#ifndef PEN_DDICT_DICTIONARY_H
#define PEN_DDICT_DICTIONARY_H

#include "base/opt.h"
#include "comm/comm.h"

extern const struct pen_opt pen__ddict_opts[];
/* As pen_ddict_open(); comm NULL: on this machine only. */
int pen__ddict_open(struct pen_ddict **out, struct pen_comm *comm,
		    const char *const *settings, uint32_t n,
		    struct pen_err *err);

/*
 * pen_ddict_put_many() in two steps: begin() sends the requests to other
 * machines and returns; keys, values and their bytes must stay unchanged until
 * end(), which waits. *out NULL: the put is complete, and begin() returns the
 * result.
 */
struct pen_puts;
int pen__ddict_put_begin(struct pen_ddict *, const struct pen_key *,
			 const struct pen_value *, uint64_t n,
			 struct pen_puts **out, struct pen_err *err);
bool pen__puts_landed(struct pen_puts *); /* end() would not wait */
int pen__puts_end(struct pen_puts *, struct pen_err *err); /* frees */

#endif
