/* The paragraph-vector samples of dm.c, and dm_rows.c, which writes them. */
#ifndef PEN_TOKEN_DM_H
#define PEN_TOKEN_DM_H

#include "token/kmers.h"
#include "token/noise.h"

struct pen_dm {
	struct pen_kmers kmers;
	struct pen_noise draw;
	uint32_t context, noise;
	bool wide; /* int64 */
};

struct pen_dm_rows {
	const uint32_t *draws; /* of the next targets */
	uint64_t doc;
	uint64_t at; /* targets that are done */
	void *const *out;
};

/* n targets of a frame: its words are id[0 .. n + 2 * context). There are 8
 * more numbers behind id and draws, of no meaning. */
void pen__dm_rows(const struct pen_tokens *, struct pen_dm_rows *,
		  const uint32_t *id, uint64_t n);

#endif
