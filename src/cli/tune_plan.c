/* tune: which settings are worth trying. */
#include "cli/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/team.h"

/* Did the user set this one? Setting a store includes its options. */
static bool is_given(const struct tune *t, const char *setting)
{
	size_t n = strcspn(setting, "=");

	if (!strncmp(setting, "store.", 6))
		n = 5;
	for (size_t i = 0; i < t->nfixed; i++)
		if (!strncmp(t->fixed[i], setting, n) && t->fixed[i][n] == '=')
			return true;
	return false;
}

static bool same(const struct candidate *a, const struct candidate *b)
{
	size_t k = 0;

	while (k < a->n && a->n == b->n && !strcmp(a->set[k], b->set[k]))
		k++;
	return a->n == b->n && k == a->n;
}

/* Adds a candidate from strings such as "store=uring queue_depth=8", without
 * the settings given by the user, unless it is a duplicate. */
static void add(struct tune *t, const char *const *text, size_t n)
{
	struct candidate *c = &t->c[t->n < TUNE_MOST ? t->n : TUNE_MOST - 1];

	*c = (struct candidate){ .is_default = !t->n };
	for (size_t i = 0; i < n; i++)
		for (const char *p = text[i]; *p;) {
			const size_t len = strcspn(p, " ");

			if (c->n < TUNE_SETTINGS && !is_given(t, p))
				snprintf(c->set[c->n++], sizeof(c->set[0]),
					 "%.*s", (int)len, p);
			p += len + (p[len] == ' ');
		}
	for (size_t i = 0; i < t->n; i++)
		if (same(&t->c[i], c))
			return;
	t->n += t->n < TUNE_MOST;
}

/* Thread counts worth trying: 1, half, all, and twice the available CPUs. */
static size_t thread_counts(const char *key, char (*text)[64])
{
	const unsigned all = pen__cpus();
	const unsigned v[] = { 1, all > 3 ? all / 2 : 0, all > 1 ? all : 0,
			       2 * all };
	size_t n = 0;

	for (size_t i = 0; i < 4; i++)
		if (v[i])
			snprintf(text[n++], sizeof(*text), "%s=%u", key, v[i]);
	return n;
}

/* Every way to read with every number of threads and prefetch depth. */
static void add_all(struct tune *t, const char *threads,
		    const char *const *ahead, const char *const *ways)
{
	const bool uring = is_given(t, "store=") || pen_store_usable("uring");
	char text[4][64];
	const size_t n = thread_counts(threads, text);

	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; ways[w]; w++)
			for (size_t k = 0; ahead[k]; k++)
				if (uring || !strstr(ways[w], "uring"))
					add(t,
					    (const char *[]){ text[i], ahead[k],
							      ways[w] },
					    3);
}

/* Chunk sizes of a block shuffle with a constant block size, all else default.
 */
static void add_chunks(struct tune *t)
{
	static const char *const chunks[] = {
		"sampler.chunk=8 sampler.chunks=2048",
		"sampler.chunk=32 sampler.chunks=512",
		"sampler.chunk=128 sampler.chunks=128",
		"sampler.chunk=512 sampler.chunks=32",
	};

	for (size_t i = 0; i < t->nfixed; i++)
		for (size_t k = 0; !strcmp(t->fixed[i], "sampler=block") &&
				   !is_given(t, "sampler.chunk=") && k < 4;
		     k++)
			add(t, &chunks[k], 1);
}

void tune_plan(struct tune *t)
{
	static const char *const load_ahead[] = { "prefetch=2", "prefetch=16",
						  NULL };
	static const char *const load_ways[] = {
		"store=posix",
		"store=mmap",
		"store=uring queue_depth=8",
		"store=uring queue_depth=64",
		"store=posix store.direct=true",
		"store=uring store.direct=true queue_depth=8",
		"store=uring store.direct=true queue_depth=64",
		NULL
	};
	static const char *const run_ahead[] = { "reader.prefetch_size=2",
						 "reader.prefetch_size=4",
						 "reader.prefetch_size=8",
						 NULL };
	static const char *const run_ways[] = { "reader.odirect=false",
						"reader.odirect=true", NULL };

	add(t, NULL, 0); /* the defaults */
	if (t->workload)
		add_all(t, "reader.read_threads", run_ahead, run_ways);
	else
		add_all(t, "threads", load_ahead, load_ways);
	add_chunks(t);
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
