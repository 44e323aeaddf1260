/*
 * Computes the verdict of results that have none. Earlier versions named the
 * stage that took most of the time, which is wrong if other processes used the
 * CPUs. Their results contain fewer facts (none about the scheduling of
 * threads), so the verdict is more often unknown.
 */
#include <math.h>
#include <stdio.h>

#include "base/show.h"
#include "report/page_run.h"
#include "verdict/verdict.h"

static const struct {
	enum pen_fact fact;
	const char *path;
	double scale;
} numbers[] = {
	{ PEN_PLAN_S, "stages.plan_ns", 1e-9 },
	{ PEN_OPEN_S, "stages.open_ns", 1e-9 },
	{ PEN_READ_S, "stages.read_ns", 1e-9 },
	{ PEN_UNPACK_S, "stages.unpack_ns", 1e-9 },
	{ PEN_DECODE_S, "stages.decode_ns", 1e-9 },
	{ PEN_COPY_S, "stages.emit_ns", 1e-9 },
	{ PEN_IDLE_S, "stages.idle_ns", 1e-9 },
	{ PEN_SECONDS, "totals.train_s", 1 },
	{ PEN_FIRST_S, "totals.first_batch_s", 1 },
	{ PEN_CPU_S, "totals.cpu_s", 1 },
	{ PEN_READS, "totals.reads", 1 },
	{ PEN_READ_BYTES, "totals.read_bytes", 1 },
	{ PEN_DEVICE_BYTES, "totals.device_read_bytes", 1 },
	{ PEN_HOST_S, "totals.train_s", 1 },
	{ PEN_PRESSURE_CPU_S, "watch.pressure.cpu_some_us", 1e-6 },
	{ PEN_PRESSURE_MEMORY_S, "watch.pressure.memory_full_us", 1e-6 },
	{ PEN_PREFETCH, "loader.prefetch", 1 },
	{ PEN_BATCH_ROWS, "config.reader.batch_size", 1 },
};

static void fill(const struct pen_doc *d, struct pen_facts *f)
{
	const uint32_t host =
		pen__jdoc_first(&d->j, pen__doc_at(d, 0, "hosts"));
	const double n = pen__doc_number(d, 0, "accelerators");
	double *v = f->v, watched;

	pen__facts_init(f);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		v[numbers[i].fact] = pen__doc_number(d, 0, numbers[i].path) *
				     numbers[i].scale;
	v[PEN_WAIT_S] = pen__doc_number(d, 0, "totals.accelerator_load_s") / n;
	v[PEN_COMPUTE_S] =
		pen__doc_number(d, 0, "totals.accelerator_compute_s") / n;
	v[PEN_THREADS_S] =
		pen__doc_number(d, 0, "loader.threads") * v[PEN_SECONDS];
	v[PEN_CPU_ROOM_S] = pen__doc_number(d, host, "cpus") * v[PEN_SECONDS];
	/* monitoring lasted longer than training */
	watched = v[PEN_SECONDS] / pen__doc_number(d, 0, "watch.seconds");
	v[PEN_PRESSURE_CPU_S] *= watched;
	v[PEN_PRESSURE_MEMORY_S] *= watched;
	/* older versions counted decoding as copying, and opening as reading */
	if (isnan(v[PEN_DECODE_S]))
		v[PEN_DECODE_S] = v[PEN_OPEN_S] = 0;
	snprintf(f->store, sizeof(f->store), "%s",
		 pen__doc_text(d, 0, "loader.store"));
	snprintf(f->device, sizeof(f->device), "%s",
		 pen__doc_text(d, host, "device.name"));
	f->training = true;
	f->fed = pen__doc_true(d, 0, "totals.au_met");
}

void pen__run_why(struct pen_text *t, const struct pen_doc *d)
{
	const double au = pen__doc_number(d, 0, "totals.au.mean"),
		     wanted = pen__doc_number(d, 0, "totals.au_wanted"),
		     n = pen__doc_number(d, 0, "accelerators");
	struct pen_verdict why;
	struct pen_facts f;

	fill(d, &f);
	pen__verdict(&f, NULL, 0, &why);
	if (n > 0 && au >= 0)
		pen__text_add(
			t, "Fed %s at %.1f %% utilisation",
			pen__show_counted((uint64_t)n, "emulated accelerator")
				.s,
			au < wanted ? floor(au * 10) / 10 : au);
	if (n > 0 && au >= 0 && wanted > 0)
		pen__text_add(t, " (%s %.4g %%)",
			      au < wanted ? "below the target of" : "target",
			      wanted);
	if (n > 0 && au >= 0)
		pen__text_add(t, ". ");
	pen__verdict_text(&why, t);
}
