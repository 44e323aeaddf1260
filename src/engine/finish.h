/*
 * The last stage: finish_rows.c (counts completed rows and records failed
 * ones), finish.c (finishes a batch after its last row), finish_pad.c
 * (padding).
 */
#ifndef PEN_ENGINE_FINISH_H
#define PEN_ENGINE_FINISH_H

#include "engine/worker.h"

/* n rows from `row` on are done; passed on in runs. */
void pen__rows_filled(struct pen_worker *, struct pen_pooled *, uint32_t row,
		      uint32_t n);
void pen__rows_flush(struct pen_worker *);
void pen__row_failed(struct pen_worker *, struct pen_pooled *, uint32_t row,
		     struct pen_err *err);

/* All rows are done: settles failed ones and puts the batch in order. */
void pen__finish_batch(struct pen_loader *, struct pen_pooled *b);

#endif
