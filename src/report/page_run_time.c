/* A run over time: utilisation, waits, epochs, and the machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/page_run.h"

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Location of numbers in a document: a list, or one member of each of its
 * children. */
struct place {
	const char *list, *member;
};

static double *numbers(const struct pen_run_page *r, struct place at, size_t *n)
{
	return pen__doc_numbers(r->d, pen__doc_at(r->d, 0, at.list), at.member,
				n);
}

/* Plots lines from these locations; nothing if one is missing. */
static void put_lines(struct pen_text *t, const struct pen_run_page *r,
		      struct pen_plot *p, struct place x, const struct place *y)
{
	struct pen_series series[4];
	double *v[4] = { NULL };
	size_t n, count;
	double *at = numbers(r, x, &n);

	for (size_t i = 0; i < p->nseries; i++) {
		v[i] = numbers(r, y[i], &count);
		n = v[i] ? least(n, count) : 0;
		series[i] = p->series[i];
		series[i].y = v[i];
	}
	/* with one accelerator, mean and maximum are equal */
	if (n && p->nseries == 2 && !memcmp(v[0], v[1], n * sizeof(**v)))
		p->nseries = 1;
	p->series = series;
	p->x_at = at;
	p->n = n;
	if (at && n > 1)
		pen__chart_plot(t, p);
	for (size_t i = 0; i < 4; i++)
		pen__free(v[i]);
	pen__free(at);
}

void pen__run_time(struct pen_text *t, const struct pen_run_page *r)
{
	static const struct place time = { "series.t", NULL };
	static const struct place au[] = { { "series.au", NULL } };
	static const struct place load[] = { { "series.load_mean_s", NULL },
					     { "series.load_max_s", NULL } };
	const struct pen_series one[] = { { "utilisation", NULL,
					    pen__colour_of(0) } };
	const struct pen_series two[] = {
		{ "mean", NULL, pen__colour_of(0) },
		{ "maximum", NULL, pen__colour_of(1) },
	};
	struct pen_id a = pen__run_id(r, "au"), b = pen__run_id(r, "load");
	double per = pen__doc_number(r->d, 0, "series.steps_per_point");
	char about[256];
	struct pen_plot p = {
		.id = a.s,
		.title = "Utilisation over time",
		.about = about,
		.x = { "seconds", pen__show_number, 0 },
		.y = { "utilisation", pen__show_percent, 100 },
		.series = one,
		.nseries = 1,
	};
	struct pen_plot q = {
		.id = b.s,
		.title = "Wait for a batch over time",
		.about = "Wait before each step. A wait only at the start of "
			 "an epoch is start-up cost; waits throughout mean "
			 "that the loader is too slow.",
		.x = { "seconds", pen__show_number, 0 },
		.y = { "wait", pen__show_time, 0 },
		.log_y = true,
		.series = two,
		.nseries = 2,
	};

	snprintf(about, sizeof(about),
		 "Share of the time that the emulated accelerators spent "
		 "computing; each point covers %s %s.",
		 per > 1 ? pen__show_whole(per).s : "one",
		 per > 1 ? "steps" : "step");
	put_lines(t, r, &p, time, au);
	put_lines(t, r, &q, time, load);
}

void pen__run_epochs(struct pen_text *t, const struct pen_run_page *r)
{
	static const struct place epoch = { "epochs", "epoch" };
	static const struct place rate[] = { { "epochs", "samples_per_s" } };
	const struct pen_series one[] = { { "samples per second", NULL,
					    pen__colour_of(0) } };
	struct pen_id id = pen__run_id(r, "epochs");
	struct pen_plot p = {
		.id = id.s,
		.title = "Throughput by epoch",
		.about = "Samples per second of all accelerators. A slower "
			 "first epoch reads from storage what later epochs "
			 "find in the page cache.",
		.x = { "epoch", pen__show_whole, 0 },
		.y = { "samples/s", pen__show_count, 0 },
		.series = one,
		.nseries = 1,
	};

	put_lines(t, r, &p, epoch, rate);
}

/* ---- waits by percentile ---- */

#define NMARKS 7
#define MOST 400 /* points; a histogram has at most a few hundred */

/* Prints enough digits that 99.99 % does not round to 100 %. */
static struct pen_shown show_nines(double v)
{
	const double left = 100 - v;
	struct pen_shown s;
	int digits = 1;

	while (digits < 6 && left > 0 && left < pow(10, 1 - digits))
		digits++;
	snprintf(s.s, sizeof(s.s), "%.*f %%", left > 0 ? digits : 0, v);
	return s;
}

/* The position of a share of all waits: every nine has the same width. */
static double place_of(double share, double count)
{
	const double nines = log10(count > 10 ? count : 10);
	const double left = 1 - share;

	return left > 0 ? fmin(1, -log10(left) / nines) : 1;
}

void pen__run_waits(struct pen_text *t, const struct pen_run_page *r)
{
	static const struct {
		double share;
		const char *label;
	} marks[] = { { 0, "0 %" },	      { 0.5, "50 %" },
		      { 0.9, "90 %" },	      { 0.99, "99 %" },
		      { 0.999, "99.9 %" },    { 0.9999, "99.99 %" },
		      { 0.99999, "99.999 %" } };
	uint32_t list = pen__doc_at(r->d, 0, "histograms.wait.buckets");
	double all = pen__doc_number(r->d, 0, "histograms.wait.count");
	double x[MOST], y[MOST], place[MOST], sum = 0;
	struct pen_series series = { "wait", y, pen__colour_of(0) };
	struct pen_id id = pen__run_id(r, "waits");
	struct pen_tick tick[NMARKS + 1];
	size_t n = 0, nticks = 0, every;

	if (!(all > 0))
		return;
	every = pen__jdoc_count(&r->d->j, list) / (MOST - 1) + 1;
	for (uint32_t c = pen__jdoc_first(&r->d->j, list), i = 0;
	     c != PEN_JDOC_NONE; c = pen__jdoc_next(&r->d->j, c), i++) {
		uint32_t value = pen__jdoc_first(&r->d->j, c);

		sum += pen__doc_number(r->d, pen__jdoc_next(&r->d->j, value),
				       "");
		/* always include the longest */
		if (n == MOST ||
		    (i % every && pen__jdoc_next(&r->d->j, c) != PEN_JDOC_NONE))
			continue;
		x[n] = 100 * sum / all;
		y[n] = pen__doc_number(r->d, value, "") * 1e-9;
		place[n++] = place_of(sum / all, all);
	}
	for (size_t i = 0; i < NMARKS; i++)
		if (place_of(marks[i].share, all) < 1)
			tick[nticks++] = (struct pen_tick){
				place_of(marks[i].share, all), marks[i].label
			};
	tick[nticks++] = (struct pen_tick){ 1, "100 %" };
	if (n > 1)
		pen__chart_plot(
			t,
			&(struct pen_plot){
				.id = id.s,
				.title = "Distribution of the wait for a batch",
				.about =
					"Share of all waits that were at most "
					"this long; both axes are logarithmic.",
				.x = { "share of waits", show_nines, 0 },
				.y = { "wait", pen__show_time, 0 },
				.log_y = true,
				.x_at = x,
				.n = n,
				.series = &series,
				.nseries = 1,
				.place = place,
				.tick = tick,
				.nticks = nticks,
			});
}

/* ---- the machine ---- */

/* Sum over the disks of a sample. */
static double disks(const struct pen_doc *d, uint32_t sample, const char *key)
{
	uint32_t list = pen__doc_at(d, sample, "disks");
	double sum = 0;

	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		double v = pen__doc_number(d, c, key);

		sum += isfinite(v) ? v : 0;
	}
	return sum;
}

struct watched {
	double *t, *read, *write, *user, *system, *wait;
	size_t n;
};

static void watched_take(struct watched *w, const struct pen_doc *d,
			 uint32_t list)
{
	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c)) {
		double seconds = pen__doc_number(d, c, "seconds");

		w->t[w->n] = pen__doc_number(d, c, "t");
		w->read[w->n] = disks(d, c, "read_bytes") / seconds;
		w->write[w->n] = disks(d, c, "write_bytes") / seconds;
		w->user[w->n] = pen__doc_number(d, c, "cpu.user");
		w->system[w->n] = pen__doc_number(d, c, "cpu.system");
		w->wait[w->n] = pen__doc_number(d, c, "cpu.iowait");
		w->n++;
	}
}

static void put_watched(struct pen_text *t, const struct pen_run_page *r,
			const struct watched *w)
{
	const struct pen_series moved[] = {
		{ "read", w->read, pen__colour_of(0) },
		{ "written", w->write, pen__colour_of(1) },
	};
	const struct pen_series busy[] = {
		{ "user", w->user, pen__colour_of(0) },
		{ "system", w->system, pen__colour_of(1) },
		{ "waiting for I/O", w->wait, pen__colour_of(2) },
	};
	struct pen_id a = pen__run_id(r, "disks"), b = pen__run_id(r, "cpu");
	struct pen_plot p = {
		.id = a.s,
		.title = "Devices",
		.about = "Bytes per second on the monitored disks of the first "
			 "host, by all processes.",
		.x = { "seconds", pen__show_number, 0 },
		.y = { "bytes/s", pen__show_bytes, 0 },
		.x_at = w->t,
		.n = w->n,
		.series = moved,
		.nseries = 2,
	};

	pen__chart_plot(t, &p);
	p.id = b.s;
	p.title = "CPUs";
	p.about = "Share of the CPU time of the first host, by all processes.";
	p.y = (struct pen_axis){ "CPU time", pen__show_percent, 100 };
	p.series = busy;
	p.nseries = 3;
	pen__chart_plot(t, &p);
}

void pen__run_machine(struct pen_text *t, const struct pen_run_page *r)
{
	uint32_t list = pen__doc_at(r->d, 0, "watch.samples");
	size_t n = pen__jdoc_count(&r->d->j, list);
	double *mem = n > 1 ? pen__alloc(6 * n, sizeof(*mem)) : NULL;
	struct watched w;

	if (!mem)
		return;
	w = (struct watched){
		mem,	     mem + n, mem + 2 * n, mem + 3 * n, mem + 4 * n,
		mem + 5 * n, 0
	};
	watched_take(&w, r->d, list);
	put_watched(t, r, &w);
	pen__free(mem);
}
