/*
 * Chunks of the packed layout on their way to disk: rows are collected, threads
 * pack full chunks, and results are written in the order in which chunks filled
 * up. The time of writing depends on the number and size of pending chunks, not
 * on the speed of threads, so a file has the same bytes for any number of
 * threads.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "codec/cellpack.h"
#include "format/cells/packed.h"
#include "format/cells/packed_write.h"

#define MOST_WAITING ((size_t)32 << 20) /* bytes of pending chunks */

static void pack(struct pen_pk_job *j)
{
	const struct pen_pk_matrix *m = j->m;
	const uint32_t n = (uint32_t)(j->values.n / pen_dtype_size(m->dtype));
	const struct pen_cellrows rows = { j->starts.p, 4,
					   (uint32_t)(j->starts.n / 4 - 1) };

	j->out.n = 0;
	if (m->sparse)
		pen__places_pack(&rows, (const uint32_t *)(void *)j->places.p,
				 n, &j->out);
	j->numbers = j->out.n;
	pen__numbers_pack(m->sparse ? &rows : NULL, m->dtype, j->values.p, n,
			  &j->out, &j->top);
}

static void work(void *arg, unsigned i)
{
	struct pen_pk *p = arg;
	struct pen_pk_job *j;

	(void)i;
	while ((j = pen__ring_pop(p->todo, NULL, true))) {
		pack(j);
		pen__order_put(p->done, j->serial, j);
	}
}

int pen__pk_team(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	const unsigned n = p->threads ? (unsigned)p->threads : pen__cpus();

	p->job = pen__calloc(PEN_PK_JOBS, sizeof(*p->job));
	if (!p->job)
		return pen__fail_nomem(err, w->path,
				       PEN_PK_JOBS * sizeof(*p->job));
	if (n < 2)
		return 0;
	if (pen__ring_new(&p->todo, PEN_PK_JOBS, -1) < 0 ||
	    pen__order_new(&p->done, PEN_PK_JOBS) < 0)
		return pen__fail_nomem(err, w->path, 0);
	/* if no thread can be started, the calling thread packs */
	(void)!pen__team_start(&p->team, n < PEN_PK_JOBS ? n : PEN_PK_JOBS,
			       "pen-pack", work, p, NULL);
	return 0;
}

void pen__pk_disband(struct pen_cells_writer *w)
{
	struct pen_pk *p = w->priv;

	if (p->todo)
		pen__ring_close(p->todo);
	pen__team_join(p->team);
	pen__ring_free(p->todo);
	pen__order_free(p->done);
	for (unsigned i = 0; p->job && i < PEN_PK_JOBS; i++) {
		pen__buf_fini(&p->job[i].places);
		pen__buf_fini(&p->job[i].values);
		pen__buf_fini(&p->job[i].starts);
		pen__buf_fini(&p->job[i].out);
	}
	pen__free(p->job);
}

/* Writes the oldest chunk that is not yet in the file. */
static int write_one(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	struct pen_pk_job *j = &p->job[p->nwritten % PEN_PK_JOBS];
	struct pen_pk_matrix *m;

	if (p->team)
		j = pen__order_get(p->done, NULL);
	else
		pack(j);
	m = j->m;
	p->nwritten++;
	p->waiting -= j->values.n + j->places.n;
	pen__buf_le(&m->chunks, p->at + p->out.n, 8);
	pen__buf_le(&m->chunks, j->numbers, 4);
	pen__buf_le(&m->chunks, j->out.n - j->numbers, 4);
	pen__buf_put(&p->out, j->out.p, j->out.n);
	m->top = j->top > m->top ? j->top : m->top;
	if (j->out.bad || m->chunks.bad || p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	if (j->out.n > UINT32_MAX)
		return pen__fail(
			err, P_OVER_LIMIT, w->path,
			"a chunk of %s takes more than 4 GiB; pack fewer cells "
			"per chunk with format.rows= (convert: to.rows=)",
			m->path);
	return pen__pk_flush(w, false, err);
}

static void swap(struct pen_buf *a, struct pen_buf *b)
{
	const struct pen_buf c = *a;

	*a = *b;
	*b = c;
	b->n = 0;
}

static int submit(struct pen_cells_writer *w, struct pen_pk_matrix *m,
		  struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	const size_t bytes = m->values.n + m->places.n;
	struct pen_pk_job *j;
	int rc = 0;

	while (!rc && p->nqueued > p->nwritten &&
	       (p->nqueued - p->nwritten == PEN_PK_JOBS ||
		p->waiting + bytes > MOST_WAITING))
		rc = write_one(w, err);
	if (rc)
		return rc;
	j = &p->job[p->nqueued % PEN_PK_JOBS];
	j->m = m;
	j->serial = p->nqueued++;
	swap(&j->places, &m->places);
	swap(&j->values, &m->values);
	swap(&j->starts, &m->starts);
	p->waiting += bytes;
	if (p->team)
		pen__ring_push(p->todo, 0, j);
	return 0;
}

uint64_t pen__pk_waiting(const struct pen_pk_matrix *m)
{
	return m->starts.n ? m->starts.n / 4 - 1 : 0;
}

int pen__pk_add(struct pen_cells_writer *w, struct pen_pk_matrix *m,
		const struct pen_cells_lists *l, uint64_t i, uint64_t n,
		struct pen_err *err)
{
	const size_t item = pen_dtype_size(m->dtype);
	const uint64_t first = pen__pk_start(m, l, i);
	const uint64_t count = pen__pk_start(m, l, i + n) - first;
	const uint64_t before = m->values.n / item;

	if (before + count > PEN_PACKED_MOST)
		return pen__fail(err, P_OVER_LIMIT, w->path,
				 "%" PRIu32 " cells have more than %" PRIu64
				 " values; pack fewer cells per chunk with "
				 "format.rows= (convert: to.rows=)",
				 m->group, PEN_PACKED_MOST);
	pen__buf_put(&m->values, (const uint8_t *)l->values + first * item,
		     count * item);
	if (m->sparse)
		pen__buf_put(&m->places, l->indices + first, count * 4);
	if (!m->starts.n)
		pen__buf_le(&m->starts, 0, 4);
	for (uint64_t k = i + 1; k <= i + n; k++)
		pen__buf_le(&m->starts, before + pen__pk_start(m, l, k) - first,
			    4);
	if (m->values.bad || m->places.bad || m->starts.bad)
		return pen__fail_nomem(err, w->path, m->values.n);
	return pen__pk_waiting(m) == m->group ? submit(w, m, err) : 0;
}

int pen__pk_end(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	int rc = 0;

	for (uint32_t i = 0; !rc && i <= w->spec->ncsr; i++)
		if (pen__pk_waiting(&p->matrix[i]))
			rc = submit(w, &p->matrix[i], err);
	while (!rc && p->nwritten < p->nqueued)
		rc = write_one(w, err);
	return rc;
}
