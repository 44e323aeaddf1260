/* Artificial records, with numbers that can be checked by hand. */
#ifndef RECORDS_H
#define RECORDS_H

#include "emulate/record.h"
#include "ranks.h"

/* 4 samples per batch (2 in evaluation), the first step excluded, target 90 %
 */
static inline void config_make(struct pen_config *c)
{
	*c = (struct pen_config){ 0 };
	c->reader.batch_size = 4;
	c->reader.batch_size_eval = 2;
	c->output.exclude_start_steps = 1;
	c->au = 0.9;
	c->workflow.train = true;
	c->dataset.num_files_train = 64;
	c->dataset.num_files_eval = 8;
	c->dataset.num_samples_per_file = 1;
}

static inline void record_make(struct pen_record *r, struct pen_config *c,
			       struct pen_comm *comm)
{
	*r = (struct pen_record){ .c = c,
				  .comm = comm,
				  .naccel = 1,
				  .world = 1,
				  .start = 1763239746.5,
				  .end = 1763239946.25,
				  .record_bytes = 1048576 };
	pen__hist_init(&r->wait);
	pen__hist_init(&r->step);
}

/*
 * Five steps per accelerator: the first loads for 1 s, the others for `load`;
 * all compute 1 s. The block takes `slack` longer.
 */
static inline struct pen_phase *record_block(struct pen_record *r,
					     unsigned epoch, unsigned block,
					     double load, double slack)
{
	struct pen_phase *p =
		pen__record_phase(r, PEN_PHASE_TRAIN, epoch, block);

	for (unsigned a = 0; p && a < r->naccel; a++)
		for (int i = 0; i < 5; i++)
			if (pen__record_step(p, a, i ? load : 1, 1))
				return NULL;
	if (!p)
		return NULL;
	p->start = r->start + 100 * (epoch - 1) + 20 * (block - 1);
	p->seconds = 6 + 4 * load + slack;
	p->end = p->start + p->seconds;
	p->first_batch_s = 1;
	p->cached_before = 0.25;
	p->io = (struct pen_io_delta){ .payload_bytes =
					       20 * 1048576 * r->naccel,
				       .read_bytes = 4000,
				       .nreads = 40,
				       .device_read_bytes = 1000,
				       .cpu_s = 0.5 };
	p->facts = (struct pen_facts){ .training = true, .store = "uring" };
	p->facts.v[PEN_SECONDS] = p->seconds;
	p->facts.v[PEN_COMPUTE_S] = 5;
	p->facts.v[PEN_WAIT_S] = 1 + 4 * load;
	p->facts.v[PEN_PLAN_S] = 1e-9;
	p->facts.v[PEN_READ_S] = 80e-9;
	p->facts.v[PEN_UNPACK_S] = 9e-9;
	p->facts.v[PEN_COPY_S] = 5e-9;
	p->facts.v[PEN_IDLE_S] = 5e-9;
	return p;
}

static inline struct pen_phase *record_ckpt(struct pen_record *r,
					    enum pen_phase_kind kind,
					    unsigned number, double seconds)
{
	struct pen_phase *p = pen__record_phase(r, kind, 1, number);

	if (!p)
		return NULL;
	p->start = r->start + 50 + 10 * number;
	p->seconds = seconds;
	p->end = p->start + seconds;
	p->bytes = (uint64_t)1 << 30;
	return p;
}

static inline bool near(double a, double b)
{
	double d = a > b ? a - b : b - a;

	return d <= 1e-9 * (b < 0 ? -b : b) + 1e-12;
}
#define CHECK_NEAR(a, b)                                                       \
	do {                                                                   \
		double near_a = (a), near_b = (b);                             \
		if (!CHECK(near(near_a, near_b)))                              \
			fprintf(stderr, "  %s: %.12g, not %.12g\n", #a,        \
				near_a, near_b);                               \
	} while (0)

#endif
