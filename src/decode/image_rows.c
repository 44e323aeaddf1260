/* See image_rows.h. */
#include "decode/image_rows.h"

#include <string.h>

#include "base/mem.h"

/* Of one thread. */
struct image_work {
	struct pen_resizer resizer;
	uint8_t *rgb; /* all rows, where colours depend on all of them */
	size_t cap;
};

static void work_free(void *arg)
{
	struct image_work *w = arg;

	pen__resize_fini(&w->resizer);
	pen__free(w->rgb);
	pen__free(w);
}

static struct image_work *work_of(struct pen_scratch *s, size_t bytes)
{
	struct pen_kept *k = pen__scratch_keep(s, pen__image_settings);
	struct image_work *w;

	if (!k)
		return NULL;
	if (!k->p) {
		k->p = pen__calloc(1, sizeof(*w));
		k->free = work_free;
	}
	w = k->p;
	if (w && bytes > w->cap) {
		pen__free(w->rgb);
		w->rgb = pen__alloc(bytes, 1);
		w->cap = w->rgb ? bytes : 0;
	}
	return w && bytes <= w->cap ? w : NULL;
}

int pen__image_rows_start(struct pen_image_rows *r,
			  const struct pen_image_plan *p,
			  const struct pen_encoded *v)
{
	const size_t all = (size_t)p->height * p->width * 3;
	struct pen_image_draw *d = &r->draw;
	int rc;

	r->plan = p;
	r->value = v;
	r->work = work_of(v->scratch, pen__image_recolors(p) ? all : 0);
	if (!r->work)
		return PEN_ENOMEM;
	pen__image_draw(p, (uint32_t)v->head.shape[0],
			(uint32_t)v->head.shape[1], v->key, d);
	rc = pen__resize_start(&r->work->resizer, p->filter, &d->x, &d->y);
	if (!rc) {
		const struct pen_taps *x = &r->work->resizer.axis[0];
		const struct pen_taps *y = &r->work->resizer.axis[1];
		const bool some = x->to && y->to;

		r->part = (struct pen_image_part){
			d->left + x->from,
			d->top + y->from,
			x->to - x->from,
			some ? y->to - y->from : 0,
		};
	}
	return rc;
}

/* ---- elements ---- */

static void put_u8(const struct pen_image_plan *p, const uint8_t *rgb,
		   uint32_t y, uint8_t *to)
{
	const size_t plane = (size_t)p->height * p->width;

	if (!p->chw) {
		memcpy(to + (size_t)y * p->width * 3, rgb,
		       (size_t)p->width * 3);
		return;
	}
	to += (size_t)y * p->width;
	for (uint32_t x = 0; x < p->width; x++, rgb += 3)
		for (unsigned c = 0; c < 3; c++)
			to[c * plane + x] = rgb[c];
}

/* The same for elements of 16 and of 32 bits, from a table. */
#define PUT_FROM_TABLE(name, type, table)                                      \
	static void name(const struct pen_image_plan *p, const uint8_t *rgb,   \
			 uint32_t y, void *row)                                \
	{                                                                      \
		const size_t at = p->chw ? 1 : 3;                              \
		const size_t plane = p->chw ? (size_t)p->height * p->width     \
					    : 1;                               \
		type *to = (type *)row + (size_t)y * p->width * at;            \
                                                                               \
		for (uint32_t x = 0; x < p->width; x++, rgb += 3, to += at) {  \
			to[0] = p->value.table[0][rgb[0]];                     \
			to[plane] = p->value.table[1][rgb[1]];                 \
			to[2 * plane] = p->value.table[2][rgb[2]];             \
		}                                                              \
	}
PUT_FROM_TABLE(put_f32, float, f32)
PUT_FROM_TABLE(put_f16, uint16_t, f16)

static void put_row(const struct pen_image_rows *r, const uint8_t *rgb,
		    uint32_t y)
{
	if (r->plan->dtype == PEN_U8)
		put_u8(r->plan, rgb, y, r->value->dst);
	else if (r->plan->dtype == PEN_F32)
		put_f32(r->plan, rgb, y, r->value->dst);
	else
		put_f16(r->plan, rgb, y, r->value->dst);
}

/* Takes over the rows that are finished. */
static void pull(struct pen_image_rows *r)
{
	const size_t bytes = (size_t)r->plan->width * 3;
	const uint8_t *row;
	uint32_t y;

	while ((row = pen__resize_pull(&r->work->resizer, &y)))
		if (pen__image_recolors(r->plan))
			memcpy(r->work->rgb + y * bytes, row, bytes);
		else
			put_row(r, row, y);
}

void pen__image_rows_put(struct pen_image_rows *r, const uint8_t *rgb)
{
	pull(r);
	pen__resize_push(&r->work->resizer, rgb);
	pull(r);
}

void pen__image_rows_end(struct pen_image_rows *r)
{
	const struct pen_image_plan *p = r->plan;

	pull(r); /* if no row was needed */
	if (!pen__image_recolors(p))
		return;
	pen__image_recolor(p, &r->draw, r->work->rgb,
			   (size_t)p->height * p->width);
	for (uint32_t y = 0; y < p->height; y++)
		put_row(r, r->work->rgb + (size_t)y * p->width * 3, y);
}
