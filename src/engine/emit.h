/*
 * The emit stage: rows from bytes that have arrived. emit.c (through the
 * format, padded or cropped), emit_records.c (the fast path for records in lent
 * memory, which fetches them as well).
 */
#ifndef PEN_ENGINE_EMIT_H
#define PEN_ENGINE_EMIT_H

#include "engine/worker.h"

/* Requires all units of the sample; j->err receives its error. */
void pen__emit_sample(struct pen_worker *, struct pen_job *j);
/* Places a PLAIN unit that was not read straight into its row. */
void pen__emit_plain(const struct pen_pooled *, const struct pen_unit *,
		     uint32_t row, const uint8_t *src);

bool pen__gather_fits(const struct pen_loader *);
int pen__gather_new(struct pen_worker *); /* 0 or PEN_ENOMEM */
void pen__gather_rows(struct pen_worker *, struct pen_task *);

#endif
