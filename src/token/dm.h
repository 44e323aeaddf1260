/* Paragraph-vector samples: made by dm.c, written by dm_rows.c. */
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
	const uint32_t *draws; /* for the next targets */
	uint64_t doc;
	uint64_t at; /* targets written so far */
	void *const *out;
};

/* Writes n targets of a frame, whose words are id[0 .. n + 2 * context). Eight
 * more numbers after id and draws must be readable. */
void pen__dm_rows(const struct pen_tokens *, struct pen_dm_rows *,
		  const uint32_t *id, uint64_t n);

#endif
