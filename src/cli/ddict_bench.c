/*
 * ddict bench: throughput of put and get, one by one and in batches, compared
 * with a plain loop in C over an array in the same run, which is the limit of
 * this machine's memory. Every value is checked; a wrong one ends the run.
 * Ranks measure at the same time, and their rates are added.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/cmd_ddict.h"

#define AHEAD 4 /* requests in flight when prefetching */

struct bench {
	/* settings */
	uint64_t values, size, batch, time_ns, readers;
	bool others;
	/* flags */
	bool json;
	struct dict x;
	uint64_t first, mine; /* keys that this rank puts */
	uint8_t *bytes;	      /* values of these keys */
	uint8_t *to;	      /* a batch */
	struct pen_key *keys;
	struct pen_value *in;
	struct pen_rng rng;
	uint64_t wrong;
};

struct result {
	const char *name;
	double rate; /* values per second; all figures are sums over ranks */
	double cpu_s, values;
};

#define OFF(x) offsetof(struct bench, x)
static const struct pen_opt opts[] = {
	{ .name = "values",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(values),
	  .dflt = "131072",
	  .min = 1,
	  .max = 1e12,
	  .help = "number of values, over all ranks" },
	{ .name = "size",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(size),
	  .dflt = "1KiB",
	  .min = 8,
	  .max = 1e12,
	  .help = "size of a value" },
	{ .name = "batch",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(batch),
	  .dflt = "256",
	  .min = 1,
	  .max = 1e6,
	  .help = "values per request" },
	{ .name = "time",
	  .type = PEN_OPT_TIME,
	  .off = OFF(time_ns),
	  .dflt = "300ms",
	  .help = "duration of each measurement" },
	{ .name = "readers",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(readers),
	  .dflt = "0",
	  .help = "ranks that get values; the rest only serve (0: all)" },
	{ .name = "others",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(others),
	  .dflt = "false",
	  .help = "get only values that other ranks have put (with "
		  "spread=blocks keys=VALUES: from their memory)" },
	{ .name = NULL },
};

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

/* --- access methods --- */

/* Puts or gets about n values. */
typedef int way(struct bench *b, uint64_t n, struct pen_err *err);

static uint64_t draw(struct bench *b)
{
	uint64_t key;

	if (!b->others)
		return pen__mulhi(pen__rng_u64(&b->rng), b->values);
	key = pen__mulhi(pen__rng_u64(&b->rng), b->values - b->mine);
	return key < b->first ? key : key + b->mine;
}

static void draw_keys(struct bench *b, struct pen_key *k)
{
	for (uint64_t i = 0; i < b->batch; i++)
		k[i] = (struct pen_key){ NULL, draw(b) };
}

static void look(struct bench *b, const struct pen_value *v, uint64_t key)
{
	uint64_t is = ~key;

	if (v->data && v->len == b->size)
		memcpy(&is, v->data, sizeof(is));
	b->wrong += is != key;
}

/* The limit: copies rows of an array with this rank's values into a batch. */
static int gather(struct bench *b, uint64_t n, struct pen_err *err)
{
	(void)err;
	for (uint64_t i = 0; i < n; i += b->batch) {
		draw_keys(b, b->keys);
		for (uint64_t j = 0; j < b->batch; j++) {
			const uint64_t at = pen__mulhi(
				b->keys[j].number * 0x9e3779b97f4a7c15u,
				b->mine);

			memcpy(b->to + j * b->size, b->bytes + at * b->size,
			       b->size);
		}
		for (uint64_t j = 0; j < b->batch; j++) {
			uint64_t is;

			memcpy(&is, b->to + j * b->size, sizeof(is));
			b->wrong += is - b->first >= b->mine;
		}
	}
	return 0;
}

static int put_many(struct bench *b, uint64_t n, struct pen_err *err)
{
	(void)n;
	for (uint64_t i = 0; i < b->mine; i++) {
		b->keys[i] = (struct pen_key){ NULL, b->first + i };
		b->in[i] =
			(struct pen_value){ b->bytes + i * b->size, b->size };
	}
	return pen_ddict_put_many(b->x.d, b->keys, b->in, b->mine, err);
}

/* Puts some of them again, one by one. */
static int put_each(struct bench *b, uint64_t n, struct pen_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < n && !rc; i++) {
		const uint64_t at = pen__mulhi(pen__rng_u64(&b->rng), b->mine);

		rc = pen_ddict_put(
			b->x.d, (struct pen_key){ NULL, b->first + at },
			(struct pen_value){ b->bytes + at * b->size, b->size },
			err);
	}
	return rc;
}

static int get_each(struct bench *b, uint64_t n, struct pen_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < n && !rc; i++) {
		const uint64_t key = draw(b);
		struct pen_value v = { b->to, b->size };

		rc = pen_ddict_get(b->x.d, (struct pen_key){ NULL, key }, b->to,
				   &v.len, err);
		if (!rc)
			look(b, &v, key);
	}
	return rc;
}

static int get_lent(struct bench *b, uint64_t n, struct pen_err *err)
{
	for (uint64_t i = 0; i < n; i += b->batch) {
		struct pen_got *g;
		int rc;

		draw_keys(b, b->keys);
		rc = pen_ddict_get_many(b->x.d, b->keys, b->batch, &g, err);
		if (rc)
			return rc;
		for (uint64_t j = 0; j < b->batch; j++)
			look(b, &g->values[j], b->keys[j].number);
		pen_got_free(g);
	}
	return 0;
}

static void copy_out(struct bench *b, struct pen_got *g,
		     const struct pen_key *k)
{
	for (uint64_t j = 0; j < b->batch; j++) {
		const struct pen_value *v = &g->values[j];

		if (v->len == b->size)
			memcpy(b->to + j * b->size, v->data, b->size);
	}
	for (uint64_t j = 0; j < b->batch; j++)
		look(b, &(struct pen_value){ b->to + j * b->size, b->size },
		     k[j].number);
}

static int get_copied(struct bench *b, uint64_t n, struct pen_err *err)
{
	for (uint64_t i = 0; i < n; i += b->batch) {
		struct pen_got *g;
		int rc;

		draw_keys(b, b->keys);
		rc = pen_ddict_get_many(b->x.d, b->keys, b->batch, &g, err);
		if (rc)
			return rc;
		copy_out(b, g, b->keys);
		pen_got_free(g);
	}
	return 0;
}

/* Requests the next batches while one is copied. */
static int get_ahead(struct bench *b, uint64_t n, struct pen_err *err)
{
	struct pen_got *g[AHEAD] = { NULL };
	uint64_t asked = 0, done = 0;
	const uint64_t total = (n + b->batch - 1) / b->batch;
	int rc = 0;

	while (done < total && !rc) {
		for (; asked < total && asked < done + AHEAD && !rc; asked++) {
			struct pen_key *k = b->keys + asked % AHEAD * b->batch;

			draw_keys(b, k);
			rc = pen_ddict_ask(b->x.d, k, b->batch,
					   &g[asked % AHEAD], err);
		}
		if (!rc)
			rc = pen_ddict_wait(g[done % AHEAD], err);
		if (!rc)
			copy_out(b, g[done % AHEAD],
				 b->keys + done % AHEAD * b->batch);
		pen_got_free(g[done % AHEAD]);
		g[done % AHEAD] = NULL;
		done++;
	}
	for (int i = 0; i < AHEAD; i++)
		pen_got_free(g[i]);
	return rc;
}

static int freeze(struct bench *b, uint64_t n, struct pen_err *err)
{
	(void)n;
	return b->x.comm->rank ? 0 : pen_ddict_freeze(b->x.d, err);
}

/* --- running --- */

struct variant {
	const char *name;
	way *fn;
	bool once; /* run once over all values instead of for a fixed time */
	bool gets;
};

static const struct variant variants[] = {
	{ "gather loop in C", gather, false, false },
	{ "put_many", put_many, true, false },
	{ "put", put_each, false, false },
	{ "get_many, lent", get_lent, false, true },
	{ "get_many, copied", get_copied, false, true },
	{ "get_many, ahead, copied", get_ahead, false, true },
	{ "get", get_each, false, true },
	{ NULL, freeze, true, false },
	{ "frozen: get_many, lent", get_lent, false, true },
	{ "frozen: get_many, copied", get_copied, false, true },
	{ "frozen: get", get_each, false, true },
};
#define NVARIANTS (sizeof(variants) / sizeof(variants[0]))

/* One rank's results: values per second, CPU seconds, values. */
static int run_variant(struct bench *b, const struct variant *a, double *out,
		       struct pen_err *err)
{
	const uint64_t since = pen__now_ns(), burnt = pen__cpu_ns();
	uint64_t n = 0, now = since, k = b->batch;
	int rc = 0;

	while (!rc && !interrupted()) {
		rc = a->fn(b, k, err);
		n += a->once ? b->mine : k;
		now = pen__now_ns();
		if (a->once || now - since >= b->time_ns)
			break;
		/* read the clock rarely enough not to measure it */
		if (now - since < b->time_ns / 16)
			k *= 2;
	}
	out[0] = (double)n * 1e9 / (double)(now - since + 1);
	out[1] = (double)(pen__cpu_ns() - burnt) / 1e9;
	out[2] = (double)n;
	if (!rc && interrupted())
		rc = pen__fail(err, P_INTERRUPTED, "ddict bench",
			       "interrupted");
	if (!rc && b->wrong)
		rc = pen__fail(err, P_DAMAGED, "dictionary",
			       "%llu values differ from those that were put",
			       (unsigned long long)b->wrong);
	return rc;
}

static int run_arms(struct bench *b, struct result *r, struct pen_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < NVARIANTS && !rc; i++) {
		double v[3] = { 0 };

		/* gets start only after all ranks have put their values */
		if (!variants[i].gets || !b->readers ||
		    (uint64_t)b->x.comm->rank < b->readers)
			rc = run_variant(b, &variants[i], v, err);
		rc = pen__comm_agree(b->x.comm, rc, err);
		if (!rc)
			rc = pen__comm_reduce(b->x.comm, v, 3, PEN_SUM, err);
		r[i] = (struct result){ variants[i].name, v[0], v[1], v[2] };
	}
	return rc;
}

static int prepare(struct bench *b, struct pen_err *err)
{
	const uint64_t size = (uint64_t)b->x.comm->size;
	const uint64_t rank = (uint64_t)b->x.comm->rank;
	uint64_t nkeys = b->batch * AHEAD;

	b->first = b->values * rank / size;
	b->mine = b->values * (rank + 1) / size - b->first;
	if (b->others && size == 1)
		return pen__fail(err, P_BAD_VALUE, "others",
				 "there is only one rank");
	if (!b->mine)
		return pen__fail(
			err, P_BAD_VALUE, "values",
			"there are fewer values than ranks; raise values=");
	nkeys = nkeys > b->mine ? nkeys : b->mine;
	b->rng = pen__rng(1, rank);
	b->bytes = pen__alloc(b->mine, b->size);
	b->to = pen__alloc(b->batch, b->size);
	b->keys = pen__alloc(nkeys, sizeof(*b->keys));
	b->in = pen__alloc(b->mine, sizeof(*b->in));
	if (!b->bytes || !b->to || !b->keys || !b->in)
		return pen__fail_nomem(err, "values", b->mine * b->size);
	for (uint64_t i = 0; i < b->mine; i++) {
		const uint64_t key = b->first + i;

		memset(b->bytes + i * b->size, (int)(key & 255), b->size);
		memcpy(b->bytes + i * b->size, &key, sizeof(key));
	}
	return 0;
}

static int print_text(struct bench *b, const struct result *r,
		      struct pen_err *err)
{
	const struct pen_comm *c = b->x.comm;

	printf("%s, %s; %s of %s, batches of %s\n",
	       counted((uint64_t)c->size, "rank"),
	       counted((uint64_t)c->nnodes, "machine"),
	       counted(b->values, "value"), human_bytes((double)b->size),
	       grouped(b->batch));
	printf("transport: %s\n\n", pen_ddict_transport(b->x.d));
	printf("  %-26s %12s %12s %10s %12s\n", "", "values/s", "bytes/s",
	       "of loop", "CPU each");
	for (size_t i = 0; i < NVARIANTS; i++)
		if (r[i].name)
			printf("  %-26s %12s %12s %10.2f %12s\n", r[i].name,
			       human_count(r[i].rate),
			       human_bytes(r[i].rate * (double)b->size),
			       r[i].rate / r[0].rate,
			       human_time(r[i].cpu_s / r[i].values));
	printf("\n  put_many took %s of CPU for %s\n", human_time(r[1].cpu_s),
	       human_bytes((double)(b->values * b->size)));
	return dict_table(b->x.d, err);
}

static int print_json(struct bench *b, const struct result *r,
		      struct pen_err *err)
{
	struct pen_text j = { 0 };
	int rc;

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.ddict.bench/1");
	pen__json_int(&j, "ranks", (uint64_t)b->x.comm->size);
	pen__json_int(&j, "machines", (uint64_t)b->x.comm->nnodes);
	pen__json_int(&j, "values", b->values);
	pen__json_int(&j, "size", b->size);
	pen__json_int(&j, "batch", b->batch);
	pen__json_str(&j, "transport", pen_ddict_transport(b->x.d));
	pen__json_open(&j, "ways", '[');
	for (size_t i = 0; i < NVARIANTS; i++) {
		if (!r[i].name)
			continue;
		pen__json_open(&j, NULL, '{');
		pen__json_str(&j, "name", r[i].name);
		pen__json_num(&j, "values_per_second", r[i].rate);
		pen__json_num(&j, "of_loop", r[i].rate / r[0].rate);
		pen__json_num(&j, "cpu_seconds", r[i].cpu_s);
		pen__json_num(&j, "cpu_seconds_each", r[i].cpu_s / r[i].values);
		pen__json_close(&j, '}');
	}
	pen__json_close(&j, ']');
	rc = dict_json(&j, b->x.d, err);
	pen__json_close(&j, '}');
	if (rc)
		pen__text_fini(&j);
	else
		rc = text_out(&j, NULL) ? PEN_EIO : 0;
	return rc;
}

static int take_arg(struct bench *b, const struct args *a, int kind)
{
	struct pen_err err = { 0 };

	switch (kind) {
	case ARG_BAD:
		return EXIT_USAGE;
	case ARG_FLAG:
		b->json = true;
		return -1;
	case ARG_PATH:
		return complain_usage(
			P_BAD_VALUE, "ddict bench",
			"'%s' is not a setting; write settings as size=4KiB",
			a->value);
	}
	if (pen__opt_find(opts, a->key))
		return pen__opt_set(opts, b, a->key, a->value, &err)
			       ? complain(&err)
			       : -1;
	return dict_setting(&b->x, a->argv[a->at - 1]);
}

static int run(struct bench *b)
{
	struct result r[NVARIANTS];
	struct pen_err err = { 0 };
	int rc = dict_ranks(&b->x);

	if (rc >= 0)
		return rc;
	rc = dict_agree(&b->x, prepare(b, &err), &err);
	if (rc < 0)
		rc = dict_open(&b->x);
	if (rc >= 0)
		return rc;
	rc = run_arms(b, r, &err);
	if (!rc && b->x.comm->rank == 0)
		rc = b->json ? print_json(b, r, &err) : print_text(b, r, &err);
	rc = dict_agree(&b->x, rc, &err);
	return rc < 0 ? EXIT_OK : rc;
}

static int run_bench(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_ddict_bench,
			  .argc = argc,
			  .argv = argv };
	struct bench b = { 0 };
	int kind, rc = -1;

	if (pen__opt_defaults(opts, &b, NULL))
		return EXIT_FAILED;
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&b, &a, kind);
	if (rc < 0)
		rc = run(&b);
	dict_close(&b.x);
	pen__free(b.bytes);
	pen__free(b.to);
	pen__free(b.keys);
	pen__free(b.in);
	return rc;
}

static const char *const examples[] = {
	"penstock ddict bench",
	"131,072 values of 1 KiB, in one process",
	"penstock ddict bench size=100KiB values=10k batch=32",
	"larger values",
	"mpirun -n 4 penstock ddict bench share=false transport=tcp",
	"as if every rank were on a separate machine",
	NULL,
};

const struct command pen__cmd_ddict_bench = {
	.name = "ddict bench",
	.args = "[key=value ...] [--json]",
	.summary = "measure the throughput of put and get",
	.about = "Puts values and gets them in random order, one by one and in "
		 "batches, compares this with a plain loop in C over an array, "
		 "and prints which transport was used and why. Under mpirun or "
		 "srun all ranks measure at the same time.",
	.flags = flags,
	.opts = opts,
	.ddict = "",
	.examples = examples,
	.run = run_bench,
};
