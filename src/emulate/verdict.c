/*
 * A run in words: whether the accelerators were fed, and if not, what the
 * loader's threads spent their time on. It names one bound, the largest, and
 * only what was measured: the state of the threads, of the accelerators and of
 * the page cache.
 */
#include "emulate/metrics.h"

#include <math.h>
#include <string.h>

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* Decimal, three digits, with its unit. */
static void add_bytes(struct pen_text *t, double n, const char *after)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	size_t i = 0;

	while (n >= 999.5 && i < 5) {
		n /= 1000;
		i++;
	}
	pen__text_add(t, "%.3g %s%s", n, unit[i], after);
}

/* Pages of a mapped file come when they are touched, in the middle of copying:
 * when they had to come from a device, nobody can tell the two apart. */
static bool reads_unseen(const struct pen_record *r,
			 const struct pen_figures *f)
{
	return !strcmp(r->store, "mmap") && f->cached_share < 0.9;
}

static void add_bound(const struct pen_record *r, const struct pen_figures *f,
		      struct pen_text *t)
{
	const struct pen_io_delta *io = &f->io;
	const double read = (double)io->read_ns, plan = (double)io->plan_ns,
		     work = (double)io->unpack_ns + (double)io->emit_ns,
		     idle = (double)io->idle_ns,
		     all = read + plan + work + idle,
		     sum = f->load_s_sum + f->compute_s_sum + f->slack_s_sum;

	if (f->slack_s_sum > f->load_s_sum) {
		pen__text_add(t,
			      "%.0f %% of the time accelerators waited for one "
			      "another or came late from the CPU, %.0f %% for "
			      "data.",
			      percent(f->slack_s_sum, sum),
			      percent(f->load_s_sum, sum));
		return;
	}
	if (!(all > 0)) {
		pen__text_add(t,
			      "%.0f %% of the time went into waiting for "
			      "data.",
			      percent(f->load_s_sum, sum));
		return;
	}
	pen__text_add(t, "the loader's threads spent ");
	if (read >= work && read >= plan && read >= idle)
		pen__text_add(t,
			      "%.0f %% of their time reading: storage is the "
			      "bound.",
			      percent(read, all));
	else if (work >= plan && work >= idle && reads_unseen(r, f))
		pen__text_add(t,
			      "%.0f %% of their time unpacking and copying out "
			      "of mapped files, which waits for the device, "
			      "too: store=uring tells storage and decoding "
			      "apart.",
			      percent(work, all));
	else if (work >= plan && work >= idle)
		pen__text_add(t,
			      "%.0f %% of their time unpacking and copying: "
			      "decoding is the bound (more threads, or a "
			      "cheaper format).",
			      percent(work, all));
	else if (plan >= idle)
		pen__text_add(t,
			      "%.0f %% of their time planning: the order of "
			      "samples is the bound.",
			      percent(plan, all));
	else
		pen__text_add(t,
			      "%.0f %% of their time idle: too few batches are "
			      "prefetched, or steps differ too much in length.",
			      percent(idle, all));
}

static void say_training(const struct pen_record *r,
			 const struct pen_figures *f, struct pen_text *t)
{
	const double au = f->au_all.mean, wanted = 100 * r->c->au;

	if (!(f->compute_s_sum > 0)) {
		pen__text_add(t,
			      "Delivered %.4g samples/s (%.4g MiB/s) to %u "
			      "emulated accelerator%s that computed nothing: "
			      "this is the loader's limit here; ",
			      f->throughput_all.mean, f->io_all.mean, r->world,
			      r->world == 1 ? "" : "s");
		add_bound(r, f, t);
		return;
	}
	/* rounded down, so that a miss never reads as a hit */
	pen__text_add(t, "Fed %u emulated accelerator%s at %.1f %% utilisation",
		      r->world, r->world == 1 ? "" : "s", floor(au * 10) / 10);
	if (wanted > 0)
		pen__text_add(t, " (wanted %.4g %%)", wanted);
	if (wanted > 0 ? f->au_met : au >= 90) {
		pen__text_add(t, ": storage and loader keep up.");
		return;
	}
	pen__text_add(t, ": ");
	add_bound(r, f, t);
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
		pen__text_add(t, "%s%s %zu checkpoint%s of ", t->n ? " " : "",
			      both[i].what, both[i].n,
			      both[i].n == 1 ? "" : "s");
		add_bytes(t, (double)both[i].k[0].bytes, "");
		pen__text_add(t, " in %.3g s%s (%.3g GiB/s).",
			      both[i].time->mean, both[i].n == 1 ? "" : " each",
			      both[i].rate->mean);
	}
}

void pen__verdict(const struct pen_record *r, const struct pen_figures *f,
		  struct pen_text *t)
{
	const size_t before = t->n;

	if (r->partial)
		pen__text_add(t, "Interrupted: this is of the part that ran. ");
	if (f->samples)
		say_training(r, f, t);
	say_checkpoints(f, t);
	if (f->samples && f->cached_share > 0.5)
		pen__text_add(t,
			      " Warning: %.0f %% of the bytes came from the "
			      "page cache, not from the device.",
			      100 * f->cached_share);
	if (t->n == before && r->generated_files + r->kept_files)
		pen__text_add(
			t, "Generated %llu files, kept %llu that were there.",
			(unsigned long long)r->generated_files,
			(unsigned long long)r->kept_files);
	else if (t->n == before)
		pen__text_add(t, "Nothing was run.");
}
