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
 * pen_ddict_ask() for lengths alone, for the first PEN_HEAD_BYTES of values, or
 * for entire values. Lengths are always those of entire values.
 */
#define PEN_HEAD_BYTES 4096u
enum pen_part { PEN_LENGTHS, PEN_HEADS, PEN_VALUES };
int pen__ddict_ask(struct pen_ddict *, enum pen_part, const struct pen_key *,
		   uint64_t n, struct pen_got **out, struct pen_err *err);
/* The ranks that share it, or NULL. */
struct pen_comm *pen__ddict_comm(const struct pen_ddict *);
/* Are some values on other machines, a request away? */
bool pen__ddict_far(const struct pen_ddict *);
/* Number of ranks that hold one replica. */
int pen__ddict_width(const struct pen_ddict *);
/* The rank within a replica that owns a key. */
int pen__ddict_rank_of(const struct pen_ddict *, struct pen_key);

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
