/*
 * Summarises a run: how well the accelerators were fed, why not better (the
 * verdict), and the duration of checkpoints.
 */
#include "emulate/metrics.h"

#include <math.h>
#include <string.h>

#include "base/show.h"

double pen__shown_au(double au, double wanted)
{
	return au < wanted && round(au * 10) / 10 >= wanted
		       ? floor(au * 10) / 10
		       : au;
}

static void say_training(const struct pen_record *r,
			 const struct pen_figures *f, struct pen_text *t)
{
	const double au = f->au_all.mean, wanted = 100 * r->c->au;

	if (f->compute_s_sum > 0) {
		pen__text_add(t,
			      "Fed %u emulated accelerator%s at %.1f %% "
			      "utilisation",
			      r->world, r->world == 1 ? "" : "s",
			      pen__shown_au(au, wanted));
		if (wanted > 0)
			pen__text_add(t, " (%s %.4g %%)",
				      au < wanted ? "below the target of"
						  : "target",
				      wanted);
		pen__text_add(t, ". ");
	} else {
		/* over the total time: short windows may consist of prefetched
		 * batches only */
		pen__text_add(
			t,
			"Delivered %s samples/s (%s/s) to %u emulated "
			"accelerator%s with no compute time: this is the "
			"loader's limit on this machine. ",
			pen__show_count((double)f->samples / f->train_s).s,
			pen__show_bytes((double)f->payload_bytes / f->train_s)
				.s,
			r->world, r->world == 1 ? "" : "s");
	}
	pen__verdict_text(&f->why, t);
}

/* A run from the page cache does not measure the device. No warning if the
 * verdict already mentions it, or if storage was the bottleneck. */
static void warn_cached(const struct pen_figures *f, struct pen_text *t)
{
	const double cached = pen__facts_cached(&f->facts);

	if (f->samples && cached > 0.5 && !pen__cause_storage(f->why.cause) &&
	    !pen__cause_storage(f->why.there) &&
	    !strstr(f->why.evidence, "page cache"))
		pen__text_add(t,
			      " Warning: %s of the bytes came from the page "
			      "cache, not from the device.",
			      pen__show_share(cached).s);
}

static void say_checkpoints(const struct pen_figures *f, struct pen_text *t)
{
	const struct {
		const char *what;
		size_t n;
		const struct pen_ckpt_figures *k;
		const struct pen_mean *time, *rate;
	} both[] = {
		{ "Saved", f->nsaves, f->save, &f->save_time, &f->save_rate },
		{ "Loaded", f->nloads, f->load, &f->load_time, &f->load_rate },
	};

	for (size_t i = 0; i < 2; i++) {
		if (!both[i].n)
			continue;
		pen__text_add(t, "%s%s %zu checkpoint%s of %s", t->n ? " " : "",
			      both[i].what, both[i].n,
			      both[i].n == 1 ? "" : "s",
			      pen__show_bytes((double)both[i].k[0].bytes).s);
		pen__text_add(
			t, " in %s%s (%s/s).",
			pen__show_time(both[i].time->mean).s,
			both[i].n == 1 ? "" : " each",
			pen__show_bytes(both[i].rate->mean * 1073741824).s);
	}
}

static void say_evaluations(const struct pen_record *r,
			    const struct pen_figures *f, struct pen_text *t)
{
	const double wanted = 100 * r->c->au;

	if (!f->nevals)
		return;
	pen__text_add(t, "%sEvaluated %s at %.1f %% utilisation",
		      t->n ? " " : "", pen__show_counted(f->nevals, "time").s,
		      pen__shown_au(f->eval_au_all.mean, wanted));
	if (wanted > 0 && f->eval_au_all.mean < wanted)
		pen__text_add(t, " (target %.4g %%)", wanted);
	pen__text_add(t, ".");
}

/* Utilisation covers training only; it excludes checkpoints. */
static void say_stopped(const struct pen_figures *f, struct pen_text *t)
{
	const double s = (double)f->nsaves * f->save_time.mean +
			 (double)f->nloads * f->load_time.mean;

	if (f->samples && s > 0 && s >= 0.1 * (f->train_s + s))
		pen__text_add(t,
			      " Training stops during checkpoints: they took "
			      "%s in total, training %s.",
			      pen__show_time(s).s,
			      pen__show_time(f->train_s).s);
}

void pen__summary(const struct pen_record *r, const struct pen_figures *f,
		  struct pen_text *t)
{
	const size_t before = t->n;

	if (r->partial)
		pen__text_add(
			t,
			"Interrupted: the figures cover the part that ran. ");
	if (f->samples)
		say_training(r, f, t);
	say_evaluations(r, f, t);
	say_checkpoints(f, t);
	say_stopped(f, t);
	warn_cached(f, t);
	if (t->n == before && r->generated_files + r->kept_files)
		pen__text_add(t, "Generated %s and kept %s existing ones.",
			      pen__show_counted(r->generated_files, "file").s,
			      pen__show_grouped(r->kept_files).s);
	else if (t->n == before)
		pen__text_add(t, "Nothing was run.");
}
