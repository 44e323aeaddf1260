/* tune: which settings are worth trying. */
#include "cli/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/team.h"

enum { THREADS, PREFETCH, DEPTH, STORE, CHUNK };
static const char *const load_keys[] = { "threads", "prefetch", "queue_depth",
					 "store", "sampler.chunk" };
static const char *const run_keys[] = { "reader.read_threads",
					"reader.prefetch_size", NULL,
					"reader.odirect", NULL };

static void set(struct candidate *c, const char *key, const char *value)
{
	if (c->n < TUNE_SETTINGS)
		snprintf(c->set[c->n++], sizeof(c->set[0]), "%s=%s", key,
			 value);
}

static void set_number(struct candidate *c, const char *key, unsigned value)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", value);
	set(c, key, text);
}

static struct candidate *next(struct tune *t)
{
	struct candidate *c = &t->c[t->n < TUNE_MOST ? t->n++ : TUNE_MOST - 1];

	*c = (struct candidate){ 0 };
	return c;
}

/* The last one goes when there is one like it: of two settings that a given
 * one makes the same, say. */
static void drop_double(struct tune *t)
{
	const struct candidate *c = &t->c[t->n - 1];

	for (size_t i = 0; i + 1 < t->n; i++) {
		size_t k = 0;

		while (k < c->n && t->c[i].n == c->n &&
		       !strcmp(t->c[i].set[k], c->set[k]))
			k++;
		if (t->c[i].n == c->n && k == c->n) {
			t->n--;
			return;
		}
	}
}

/* Threads worth trying: 1, half, all, and twice the CPUs we may use. */
static size_t thread_counts(const struct tune *t, unsigned *v)
{
	unsigned all = pen__cpus(), n = 0;

	if (t->given[THREADS]) {
		v[0] = 0;
		return 1;
	}
	v[n++] = 1;
	if (all > 3)
		v[n++] = all / 2;
	if (all > 1)
		v[n++] = all;
	v[n++] = 2 * all;
	return n;
}

struct way {
	const char *store, *direct;
	unsigned depth; /* 0: as it is */
};
static const struct way ways[] = {
	{ "posix", NULL, 0 },	 { "mmap", NULL, 0 },	 { "uring", NULL, 8 },
	{ "uring", NULL, 64 },	 { "posix", "true", 0 }, { "uring", "true", 8 },
	{ "uring", "true", 64 },
};

static void add_load(struct tune *t, const struct way *w, unsigned threads,
		     unsigned ahead)
{
	struct candidate *c = next(t);

	if (threads)
		set_number(c, "threads", threads);
	if (ahead && !t->given[PREFETCH])
		set_number(c, "prefetch", ahead);
	if (w->store && !t->given[STORE]) {
		set(c, "store", w->store);
		if (w->direct)
			set(c, "store.direct", w->direct);
	}
	if (w->depth && !t->given[DEPTH])
		set_number(c, "queue_depth", w->depth);
	drop_double(t);
}

static void candidates_load(struct tune *t)
{
	static const unsigned ahead[] = { 2, 16 };
	bool uring = pen_store_usable("uring");
	unsigned threads[8];
	size_t n = thread_counts(t, threads);

	next(t)->is_default = true;
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
			if (!uring && !t->given[STORE] &&
			    !strcmp(ways[w].store, "uring"))
				continue;
			for (size_t k = 0; k < 2; k++)
				if (!t->given[PREFETCH] || !k)
					add_load(t, &ways[w], threads[i],
						 ahead[k]);
		}
}

/* Chunks of a block shuffle, with blocks of the same size, and all else as it
 * is by default. */
static void candidates_chunk(struct tune *t)
{
	static const unsigned chunk[] = { 8, 32, 128, 512 };

	for (size_t i = 0; i < t->nfixed; i++)
		if (!strcmp(t->fixed[i], "sampler=block") && !t->given[CHUNK])
			for (size_t k = 0; k < 4; k++) {
				struct candidate *c = next(t);

				set_number(c, "sampler.chunk", chunk[k]);
				set_number(c, "sampler.chunks",
					   16384 / chunk[k]);
			}
}

static void candidates_run(struct tune *t)
{
	static const unsigned ahead[] = { 2, 4, 8 };
	unsigned threads[8];
	size_t n = thread_counts(t, threads);

	next(t)->is_default = true;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 3; k++)
			for (unsigned direct = 0; direct < 2; direct++) {
				struct candidate *c;

				if ((t->given[PREFETCH] && k) ||
				    (t->given[STORE] && direct))
					continue;
				c = next(t);
				if (threads[i])
					set_number(c, run_keys[THREADS],
						   threads[i]);
				if (!t->given[PREFETCH])
					set_number(c, run_keys[PREFETCH],
						   ahead[k]);
				if (!t->given[STORE])
					set(c, run_keys[STORE],
					    direct ? "true" : "false");
			}
}

void tune_name(const struct candidate *c, char *buf, size_t cap)
{
	size_t at = 0;

	snprintf(buf, cap, "%s", c->n ? "" : "defaults");
	for (size_t i = 0; i < c->n && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? " " : "",
				       c->set[i]);
}

void tune_plan(struct tune *t)
{
	if (t->workload)
		candidates_run(t);
	else
		candidates_load(t);
	candidates_chunk(t);
}

void tune_leave_out(struct tune *t, const char *setting)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t k = 0;

		while (k < t->c[i].n && strcmp(t->c[i].set[k], setting) != 0)
			k++;
		if (k == t->c[i].n)
			t->c[n++] = t->c[i];
	}
	t->n = n;
}

void tune_settled(struct tune *t, const char *key)
{
	for (int k = 0; k < TUNE_KEYS; k++)
		if (!strcmp(key, load_keys[k]) ||
		    (run_keys[k] && !strcmp(key, run_keys[k])))
			t->given[k] = true;
}
