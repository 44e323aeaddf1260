/* load: facts for the verdict, and its sentences. */
#include "cli/load.h"
#include "emulate/system.h"

/* The device that holds the data: that of the first file. */
static void device_of(const struct run *r, char *name, size_t cap)
{
	const struct pen_dataset *ds = pen_loader_dataset(r->l);
	char path[4096];

	name[0] = '\0';
	if (!pen_dataset_object(ds, 0, path, sizeof(path), NULL))
		(void)pen__disk_of(path, name, cap);
}

static void take(const struct run *r, const struct pen_stats *s,
		 struct pen_facts *f)
{
	char device[32];

	device_of(r, device, sizeof(device));
	pen__facts_init(f);
	pen__facts_of_loader(f, s);
	pen__machine_facts(f, device,
			   r->comm ? (unsigned)r->comm->local_size : 1);
	f->v[PEN_THREADS_S] = f->v[PEN_SECONDS] * s->nthreads;
	f->v[PEN_BATCH_ROWS] = r->info.batch_samples;
	snprintf(f->store, sizeof(f->store), "%s", r->data.source);
}

/* The threads are already running: count everything they did. */
void load_facts_start(struct run *r)
{
	struct pen_stats now, none = { 0 };

	pen_loader_stats(r->l, &now, sizeof(now));
	none.nthreads = now.nthreads;
	take(r, &none, &r->facts);
}

void load_facts_end(struct run *r)
{
	const struct pen_facts before = r->facts;
	struct pen_stats s;

	pen_loader_stats(r->l, &s, sizeof(s));
	take(r, &s, &r->facts);
	pen__facts_since(&r->facts, &before);
}

void load_words(const struct run *r)
{
	const uint32_t batch = r->info.typical_samples;
	double rate = per_second((double)r->stats.nsamples, r->seconds);
	struct pen_text t = { 0 };

	/* a step takes one batch per rank */
	if (r->comm)
		rate /= r->comm->size;
	if (rate <= 0)
		return;
	pen__text_add(&t,
		      "On average this loader keeps up with training steps of "
		      "%s that take %s or longer. ",
		      counted(batch, "sample"), human_time(batch / rate));
	pen__verdict_text(&r->why, &t);
	if (t.p) {
		fputs("\n  Summary:", stdout);
		print_wrapped(stdout, t.p, 10, 2);
	}
	pen__text_fini(&t);
}
