/* A record grows during the run and contains measured values only. */
#include "emulate/record.h"

#include <string.h>

#include "base/mem.h"

void pen__record_fini(struct pen_record *r)
{
	for (size_t i = 0; i < r->nphases; i++) {
		struct pen_phase *p = &r->phase[i];

		for (unsigned a = 0; p->of && a < r->naccel; a++) {
			pen__free(p->of[a].load);
			pen__free(p->of[a].compute);
		}
		pen__free(p->of);
	}
	for (size_t i = 0; i < r->nepochs; i++)
		pen__free(r->epoch[i].meminfo);
	pen__free(r->epoch);
	pen__free(r->phase);
	*r = (struct pen_record){ 0 };
}

struct pen_phase *pen__record_phase(struct pen_record *r,
				    enum pen_phase_kind kind, unsigned epoch,
				    unsigned block)
{
	struct pen_phase *p;

	if (r->nphases == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;

		p = pen__realloc(r->phase, cap, sizeof(*p));
		if (!p)
			return NULL;
		r->phase = p;
		r->cap = cap;
	}
	p = &r->phase[r->nphases];
	*p = (struct pen_phase){ .kind = kind,
				 .epoch = epoch,
				 .block = block,
				 .cached_before = -1 };
	if (kind == PEN_PHASE_TRAIN || kind == PEN_PHASE_EVAL) {
		p->of = pen__calloc(r->naccel, sizeof(*p->of));
		if (!p->of)
			return NULL;
	}
	r->nphases++;
	return p;
}

int pen__record_step(struct pen_phase *p, unsigned accel, double load,
		     double compute)
{
	struct pen_step_times *s = &p->of[accel];

	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		float *l = pen__realloc(s->load, cap, sizeof(*l)), *c;

		if (!l)
			return PEN_ENOMEM;
		s->load = l;
		c = pen__realloc(s->compute, cap, sizeof(*c));
		if (!c)
			return PEN_ENOMEM;
		s->compute = c;
		s->cap = cap;
	}
	s->load[s->n] = (float)load;
	s->compute[s->n++] = (float)compute;
	return 0;
}
