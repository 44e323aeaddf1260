/*
 * bench: experiments over settings of a loader. Here is what they share; each
 * has a file of its own and a line in the table below.
 */
#include "cli/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/dataset.h"
#include "engine/spec.h"

#define MOST_REPEATS 1000

static const struct command *const experiments[] = {
	&pen__bench_blocks,	&pen__bench_chunks,   &pen__bench_prefetch,
	&pen__bench_batch_size, &pen__bench_formats,  &pen__bench_shuffle,
	&pen__bench_startup,	&pen__bench_resume,   &pen__bench_mmap,
	&pen__bench_neighbour,	&pen__bench_overlap,  &pen__bench_workers,
	&pen__bench_iterate,	&pen__bench_prealloc, &pen__bench_memory,
	&pen__bench_headspace,	&pen__bench_dna,      NULL,
};

/* ---- arguments ---- */

int bench_init(struct bench *b, const char *out)
{
	struct pen_err err = { 0 };

	*b = (struct bench){ .out = out, .repeats = 1 };
	b->watch = mmap(NULL, sizeof(*b->watch), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b->watch == MAP_FAILED) {
		b->watch = NULL;
		pen__fail_nomem(&err, "bench", sizeof(*b->watch));
		return complain(&err);
	}
	if (pen_spec_new(&b->spec, &err))
		return complain(&err);
	pen__host(&b->host);
	return -1;
}

void bench_close(struct bench *b)
{
	struct stat st;

	/* nothing came of it */
	if (b->made && !b->nadded && !stat(b->out, &st) && !st.st_size)
		unlink(b->out);
	if (b->watch)
		munmap(b->watch, sizeof(*b->watch));
	pen_spec_free(b->spec);
	pen__text_fini(&b->settings);
	pen__text_fini(&b->meta);
	pen__lines_fini(&b->rows);
}

/* Keys stand in JSON as they are. */
static int add_meta(struct bench *b, const char *text)
{
	const size_t n = strcspn(text, "=");

	if (!n || !text[n] ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_-.") != n)
		return complain_usage("bench: -M: '%s' is not KEY=VALUE", text);
	pen__text_put(&b->meta, text, n);
	pen__text_put(&b->meta, "", 1);
	pen__text_put(&b->meta, text + n + 1, strlen(text + n + 1) + 1);
	return -1;
}

static int take_number(const struct args *a, uint64_t most, uint64_t *to)
{
	if (pen__parse_count(a->value, to) || !*to || *to > most)
		return complain_usage("bench: %s: '%s' does not do", a->key,
				      a->value);
	return -1;
}

static int take_flag(struct bench *b, const struct args *a)
{
	if (!strcmp(a->key, "-o"))
		b->out = a->value;
	else if (!strcmp(a->key, "-M"))
		return add_meta(b, a->value);
	else if (!strcmp(a->key, "-n"))
		return take_number(a, UINT64_MAX, &b->batches);
	else if (!strcmp(a->key, "--repeats"))
		return take_number(a, MOST_REPEATS, &b->repeats);
	else if (!strcmp(a->key, "--cold"))
		b->cold = true;
	else if (!strcmp(a->key, "--warm"))
		b->warm = true;
	else if (!strcmp(a->key, "--resume"))
		b->resume = true;
	else if (!strcmp(a->key, "--json"))
		b->json = true;
	else
		b->quiet = true;
	return -1;
}

int bench_arg(struct bench *b, const struct args *a, int kind)
{
	int rc;

	if (kind == ARG_FLAG)
		return take_flag(b, a);
	if (kind == ARG_SETTING && !b->any_order &&
	    (!strncmp(a->key, "sampler", 7) || !strcmp(a->key, "shuffle")))
		return complain_usage("bench: %s= is what the experiment sets",
				      a->key);
	rc = spec_arg(b->spec, a, kind);
	if (rc < 0 && kind == ARG_SETTING)
		pen__text_add(&b->settings, "%s%s=%s", b->settings.n ? " " : "",
			      a->key, a->value);
	return rc;
}

int bench_set(struct pen_spec *s, const char *key, uint64_t value,
	      struct pen_err *err)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)value);
	return pen_spec_set(s, key, buf, err);
}

/* ---- the data ---- */

/* Numbers in a sample of the largest field: genes of a cell. */
static double columns(const struct pen_dataset *ds)
{
	const struct pen_field *f = NULL;
	double n = 1;

	for (uint32_t i = 0; i < ds->format->nfields; i++)
		if (!f || ds->format->field[i].max_bytes > f->max_bytes)
			f = &ds->format->field[i];
	for (uint32_t i = 0; f && i < f->ndim; i++)
		n *= (double)f->shape[i];
	return f && n > 0 ? n : 0;
}

static bool has_csr(const struct pen_format_ops *ops)
{
	const struct pen_opt *o = pen__opt_find(ops->opts, "output");

	for (size_t i = 0; o && o->choices && o->choices[i]; i++)
		if (!strcmp(o->choices[i], "csr"))
			return true;
	return false;
}

/* In a child, because indexing takes threads and memory. It also leaves the
 * index in the cache, so that no run pays for it. */
static int describe(struct bench *b, const struct trial *t, struct pen_text *j,
		    struct pen_err *err)
{
	struct pen_dataset *ds;
	int rc = pen_dataset_open(&ds, b->spec, err);

	(void)t;
	if (rc)
		return rc;
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "format", ds->format->ops->name);
	pen__json_int(j, "bytes", ds->objs.total_bytes);
	pen__json_int(j, "objects", ds->objs.nobj);
	pen__json_int(j, "samples", ds->ix.pub.nsamples);
	pen__json_num(j, "n_cols", columns(ds));
	pen__json_bool(j, "has_output", has_csr(ds->format->ops));
	pen__json_close(j, '}');
	pen_dataset_close(ds);
	return 0;
}

static int look(struct bench *b)
{
	const struct trial t = { .title = "opening", .run = describe };
	struct pen_line row;
	const int rc = trial_row(b, &t, &row);

	if (rc >= 0)
		return rc;
	snprintf(b->format, sizeof(b->format), "%s",
		 pen__line_text(&row, "format"));
	b->bytes = pen__line_number(&row, "bytes");
	b->objects = pen__line_number(&row, "objects");
	b->samples = pen__line_number(&row, "samples");
	b->ncols = pen__line_number(&row, "n_cols");
	b->has_output = pen__line_true(&row, "has_output");
	pen__line_fini(&row);
	return -1;
}

/* Before hours of runs: can rows be kept at all? */
static int try_out(struct bench *b)
{
	struct pen_err err = { 0 };
	struct stat st;
	int fd;

	b->made = stat(b->out, &st) && errno == ENOENT;
	fd = open(b->out, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		b->made = false;
		pen__fail_sys(&err, errno, b->out, "cannot be written");
		return complain(&err);
	}
	close(fd);
	return -1;
}

static void warn_bad(const struct pen_lines *rows, const char *path)
{
	if (rows->nbad)
		fprintf(stderr,
			"penstock: %s: %s skipped (line %llu is the first): "
			"not whole\n",
			path, counted(rows->nbad, "line"),
			(unsigned long long)rows->first_bad);
}

int bench_open_rows(struct bench *b)
{
	struct pen_err err = { 0 };
	int rc = try_out(b);

	if (rc >= 0)
		return rc;
	if (b->resume && pen__lines_read(&b->rows, b->out, &err))
		return complain(&err);
	warn_bad(&b->rows, b->out);
	b->start_ns = pen__now_ns();
	return -1;
}

int bench_open(struct bench *b)
{
	int rc;

	if (!b->spec->npaths)
		return complain_usage("bench: which data? give a PATH");
	if (b->spec->npaths > 1)
		return complain_usage("bench: one PATH is enough: a folder, a "
				      "glob in quotes, or @LIST; not '%s', too",
				      b->spec->paths[1]);
	if (!b->spec->epochs && !b->batches)
		return complain_usage("bench: epochs=0 has no end; give -n, "
				      "too");
	if (!b->cold)
		b->warm = true;
	if (!realpath(b->spec->paths[0], b->path))
		snprintf(b->path, sizeof(b->path), "%s", b->spec->paths[0]);
	rc = look(b);
	if (rc >= 0)
		return rc;
	rc = bench_open_rows(b);
	if (rc >= 0)
		return rc;
	if (!b->json)
		printf("%s: %s samples x %s in %s %s, %s\n",
		       shown(b->spec->paths[0]), grouped((uint64_t)b->samples),
		       grouped((uint64_t)b->ncols),
		       counted((uint64_t)b->objects, "file"), b->format,
		       human_bytes(b->bytes));
	return -1;
}

/* ---- trials ---- */

void bench_setup(const struct bench *b, struct trial *t, const char *experiment,
		 const char *fmt, ...)
{
	size_t at = (size_t)snprintf(t->setup, sizeof(t->setup),
				     "%s %s cache=%s", experiment, b->path,
				     t->cold ? "cold" : "warm");
	va_list ap;

	/* a setup too long is cut: such runs are then always done again */
	if (at >= sizeof(t->setup))
		return;
	t->setup[at++] = ' ';
	va_start(ap, fmt);
	vsnprintf(t->setup + at, sizeof(t->setup) - at, fmt, ap);
	va_end(ap);
	at += strlen(t->setup + at);
	snprintf(t->setup + at, sizeof(t->setup) - at, " batches=%llu%s%s",
		 (unsigned long long)b->batches, b->settings.n ? " " : "",
		 b->settings.n ? b->settings.p : "");
}

static bool is_done(const struct bench *b, const struct trial *t)
{
	unsigned n = 0;

	if (strlen(t->setup) + 1 >= sizeof(t->setup))
		return false;
	for (size_t i = 0; i < b->rows.n; i++)
		n += !strcmp(pen__line_text(&b->rows.row[i], "setup"),
			     t->setup);
	return n > t->repeat;
}

static void put_meta(const struct bench *b, struct pen_text *j)
{
	const char *p = b->meta.p, *end = p + b->meta.n;

	if (!b->meta.n)
		return;
	pen__json_open(j, "meta", '{');
	while (p < end) {
		const char *value = p + strlen(p) + 1;

		pen__json_str(j, p, value);
		p = value + strlen(value) + 1;
	}
	pen__json_close(j, '}');
}

static void put_head(const struct bench *b, const struct trial *t,
		     struct pen_text *j)
{
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "schema", "penstock.bench/1");
	pen__json_str(j, "setup", t->setup);
	pen__json_str(j, "time", when);
	pen__json_str(j, "host", b->host.name);
	pen__json_str(j, "cpu", b->host.cpu);
	pen__json_int(j, "cpus", b->host.cpus);
	pen__json_int(j, "memory_bytes", b->host.memory_bytes);
	pen__json_str(j, "kernel", b->host.kernel);
	pen__json_str(j, "version", pen_version());
	pen__json_str(j, "path", b->path);
	pen__json_str(j, "format", b->format);
	pen__json_str(j, "unit", b->has_output ? "cells" : "samples");
	pen__json_int(j, "bytes", (uint64_t)b->bytes);
	pen__json_int(j, "objects", (uint64_t)b->objects);
	pen__json_int(j, "samples", (uint64_t)b->samples);
	pen__json_int(j, "n_cols", (uint64_t)b->ncols);
	pen__json_str(j, "settings", b->settings.n ? b->settings.p : "");
	pen__json_int(j, "repeat", t->repeat + 1);
	pen__json_bool(j, "cold", t->cold);
	put_meta(b, j);
	t->head(j, t);
}

static int run_row(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct trial *real = t->arg;
	int rc;

	put_head(b, real, j);
	rc = real->run(b, real, j, err);
	pen__json_bool(j, "oom", false);
	pen__json_close(j, '}');
	return rc;
}

int bench_trial(struct bench *b, const struct trial *t, struct pen_line *row)
{
	struct trial outer = { .run = run_row, .arg = t };
	struct pen_text line = { .compact = true };
	struct pen_err err = { 0 };
	bool oom, nomem;
	int rc;

	*row = (struct pen_line){ 0 };
	if (is_done(b, t)) {
		b->nskipped++;
		b->at++;
		return -1;
	}
	snprintf(outer.title, sizeof(outer.title), "%s", t->title);
	rc = trial_run(b, &outer, &line, &oom);
	b->at++;
	if (rc < 0 && oom) {
		pen__text_fini(&line);
		line.compact = true;
		put_head(b, t, &line);
		pen__json_bool(&line, "oom", true);
		pen__json_close(&line, '}');
	}
	if (rc < 0 && pen__lines_append(b->out, &line, &err))
		rc = complain(&err);
	if (rc < 0 && !pen__line_parse(row, line.p, line.n, &nomem))
		rc = EXIT_FAILED; /* memory: the row itself is in the file */
	b->nadded += rc < 0;
	if (rc < 0 && b->json)
		fwrite(line.p, 1, line.n, stdout);
	pen__text_fini(&line);
	return rc;
}

void bench_print_end(const struct pen_line *r)
{
	const double resident = pen__line_number(r, "resident");

	if (!pen__line_true(r, "cold") || resident < 0.05)
		puts("");
	else if (isnan(resident))
		puts("  perhaps not cold");
	else
		printf("  not cold: %.0f %% in memory\n", 100 * resident);
}

int bench_end(struct bench *b, int rc)
{
	if (rc >= 0 && rc < 128)
		return rc;
	if (!b->json && b->nskipped)
		printf("  %s left out: %s has them\n",
		       counted(b->nskipped, "run"), shown(b->out));
	if (!b->json && b->nadded)
		printf("\n  Rows are in %s; penstock report %s makes a page of "
		       "them.\n",
		       shown(b->out), shown(b->out));
	if (rc >= 128 && !b->json)
		printf("  (interrupted%s)\n",
		       b->nadded ? ": the rows so far are kept" : "");
	return rc < 0 ? EXIT_OK : rc;
}

/* ---- the command ---- */

static int run_bench(int argc, char **argv)
{
	const char *names[32], *near;
	size_t n = 0;

	if (!argc)
		return complain_usage("bench: which experiment? see penstock "
				      "bench --help");
	for (; experiments[n]; n++)
		names[n] = strchr(experiments[n]->name, ' ') + 1;
	names[n] = NULL;
	near = pen__nearest(argv[0], names);
	return complain_usage(near ? "bench: no experiment '%s'; did you mean "
				     "'%s'?"
				   : "bench: no experiment '%s'; see penstock "
				     "%s --help",
			      argv[0], near ? near : "bench");
}

static const char *const examples[] = {
	"penstock bench blocks cells.h5ad '65536 / [1,4096]'",
	"speed and memory of block shuffles, from whole blocks to single rows",
	"penstock bench read-chunks cells.h5ad",
	"what reading costs, and what making tables of it adds",
	"penstock bench workers",
	"step time by the number of workers, beside PyTorch's DataLoader",
	"penstock bench headspace images/ --compute 20",
	"would a faster loader help a model of 20 ms a step?",
	"penstock report blocks.jsonl -o report.html",
	"a page with charts of what was measured",
	NULL,
};

const struct command pen__cmd_bench = {
	.name = "bench",
	.args = "EXPERIMENT [PATH] [key=value ...] [flags]",
	.summary = "experiments: one thing varied, everything measured",
	.about = "Every run is a process of its own, so that its peak memory "
		 "is its own, and leaves one row in a file of results, which "
		 "`penstock report` makes a page of.",
	.examples = examples,
	.sub = experiments,
	.run = run_bench,
};
