/*
 * ddict load: loads a data set into a dictionary. The key of a sample is its
 * number, its value the concatenated bytes of its fields as the loader delivers
 * them. Every rank loads its part; values go to their owners, one message per
 * owner and batch.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/cmd_ddict.h"

struct load {
	struct dict x;
	struct pen_spec *spec;
	bool json, serve, batch_set;
	const char *save;
	/* a batch */
	struct pen_key *keys;
	struct pen_value *values;
	uint8_t *buf; /* rows of several fields, concatenated */
	size_t cap, rows;
	/* results of all ranks */
	double samples, bytes, cpu_s, seconds;
};

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ "--save", "FILE", "save the dictionary to FILE, to be mapped later" },
	{ "--serve", NULL,
	  "keep the dictionary until interrupted; with ddict.name= others can "
	  "join" },
	{ NULL, NULL, NULL },
};

/* --- one batch --- */

static struct pen_value row_of(const struct pen_tensor *t, uint32_t n,
			       uint32_t i)
{
	const uint8_t *p = t->data;
	const size_t size = pen_dtype_size(t->dtype);

	if (t->layout == PEN_RAGGED)
		return (struct pen_value){
			p + (size_t)t->offsets[i] * size,
			(uint64_t)(t->offsets[i + 1] - t->offsets[i]) * size
		};
	return (struct pen_value){ p + t->nbytes / n * i, t->nbytes / n };
}

static int make_room(struct load *l, const struct pen_batch *b,
		     struct pen_err *err)
{
	size_t bytes = 0;

	for (uint32_t t = 0; t < b->ntensors; t++)
		bytes += b->tensors[t].nbytes;
	if (b->nsamples > l->rows) {
		pen__free(l->keys);
		pen__free(l->values);
		l->keys = pen__alloc(b->nsamples, sizeof(*l->keys));
		l->values = pen__alloc(b->nsamples, sizeof(*l->values));
		l->rows = b->nsamples;
	}
	if (b->ntensors > 1 && bytes > l->cap) {
		pen__free(l->buf);
		l->buf = pen__alloc(bytes, 1);
		l->cap = bytes;
	}
	if (!l->keys || !l->values || (b->ntensors > 1 && !l->buf))
		return pen__fail_nomem(err, "batch", bytes);
	return 0;
}

static int put_batch(struct load *l, const struct pen_batch *b,
		     struct pen_err *err)
{
	uint8_t *to;
	int rc = make_room(l, b, err);

	to = l->buf;
	for (uint32_t i = 0; i < b->nsamples && !rc; i++) {
		struct pen_value *v = &l->values[i];

		l->keys[i] = (struct pen_key){ NULL, b->ids[i] };
		*v = row_of(&b->tensors[0], b->nsamples, i);
		if (b->ntensors == 1)
			continue;
		*v = (struct pen_value){ to, 0 };
		for (uint32_t t = 0; t < b->ntensors; t++) {
			const struct pen_value part =
				row_of(&b->tensors[t], b->nsamples, i);

			if (part.len)
				memcpy(to, part.data, part.len);
			to += part.len;
			v->len += part.len;
		}
	}
	if (!rc)
		rc = pen_ddict_put_many(l->x.d, l->keys, l->values, b->nsamples,
					err);
	for (uint32_t i = 0; i < b->nsamples && !rc; i++)
		l->bytes += (double)l->values[i].len;
	l->samples += b->nsamples;
	return rc;
}

/* --- the data set --- */

static int set_ranks(struct load *l, struct pen_err *err)
{
	char rank[32], world[32];
	int rc;

	snprintf(rank, sizeof(rank), "%d", l->x.comm->rank);
	snprintf(world, sizeof(world), "%d", l->x.comm->size);
	rc = pen_spec_set(l->spec, "world", world, err);
	if (!rc)
		rc = pen_spec_set(l->spec, "rank", rank, err);
	/* every sample once: the last batches are not padded */
	if (!rc)
		rc = pen_spec_set(l->spec, "tail", "keep", err);
	if (!rc && !l->batch_set)
		rc = pen_spec_set(l->spec, "batch_size", "1024", err);
	return rc;
}

static int load(struct load *l, struct pen_err *err)
{
	struct pen_loader *loader;
	struct pen_batch *b;
	int rc = set_ranks(l, err);

	if (!rc)
		rc = pen_loader_open(&loader, l->spec, err);
	if (rc)
		return rc;
	if (!l->x.comm->rank)
		warn_of(pen_loader_dataset(loader));
	while (!rc && !interrupted()) {
		rc = pen_loader_next(loader, &b, err);
		if (rc)
			break;
		rc = put_batch(l, b, err);
		pen_batch_unref(b);
	}
	pen_loader_close(loader);
	if (interrupted())
		return pen__fail(err, P_INTERRUPTED, "ddict load",
				 "interrupted");
	return rc == PEN_END ? 0 : rc;
}

static int load_all(struct load *l, struct pen_err *err)
{
	const uint64_t since = pen__now_ns(), burnt = pen__cpu_ns();
	double v[3];
	int rc = pen__comm_agree(l->x.comm, load(l, err), err);

	if (rc)
		return rc;
	l->seconds = (double)(pen__now_ns() - since) / 1e9;
	v[0] = l->samples;
	v[1] = l->bytes;
	v[2] = (double)(pen__cpu_ns() - burnt) / 1e9;
	rc = pen__comm_reduce(l->x.comm, v, 3, PEN_SUM, err);
	l->samples = v[0];
	l->bytes = v[1];
	l->cpu_s = v[2];
	return rc;
}

/* Memory in use per byte of values, over all shards. */
static int cost_of(struct pen_ddict *d, double *cost, uint64_t *values,
		   struct pen_err *err)
{
	uint64_t used = 0;

	*values = 0;
	for (uint32_t i = 0; i < pen_ddict_nshards(d); i++) {
		struct pen_shard_stats s;
		int rc = pen_ddict_stats(d, i, &s, sizeof(s), err);

		if (rc)
			return rc;
		used += s.used_bytes;
		*values += s.value_bytes;
	}
	*cost = *values ? (double)used / (double)*values : 0;
	return 0;
}

static int print(struct load *l, struct pen_err *err)
{
	struct pen_ddict *d = l->x.d;
	struct pen_text j = { 0 };
	uint64_t nkeys, values;
	double cost;
	int rc;

	rc = pen_ddict_len(d, &nkeys, err);
	if (!rc)
		rc = cost_of(d, &cost, &values, err);
	if (rc)
		return rc;
	if (!l->json) {
		printf("loaded %s, %s, in %s (%s/s), %s of CPU\n",
		       counted(nkeys, "key"), human_bytes(l->bytes),
		       human_time(l->seconds),
		       human_bytes(l->bytes / l->seconds),
		       human_time(l->cpu_s));
		printf("memory: %.3f bytes per byte of values\ntransport: %s\n",
		       cost, pen_ddict_transport(d));
		return dict_table(d, err);
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.ddict.load/1");
	pen__json_int(&j, "keys", nkeys);
	pen__json_int(&j, "value_bytes", values);
	pen__json_num(&j, "seconds", l->seconds);
	pen__json_num(&j, "cpu_seconds", l->cpu_s);
	pen__json_num(&j, "bytes_per_byte", cost);
	pen__json_str(&j, "transport", pen_ddict_transport(d));
	rc = dict_json(&j, d, err);
	pen__json_close(&j, '}');
	if (rc)
		pen__text_fini(&j);
	else if (text_out(&j, NULL))
		rc = PEN_EIO;
	return rc;
}

static void serve(struct load *l)
{
	const struct timespec nap = { .tv_nsec = 100000000 };

	if (l->x.comm->rank == 0 && !l->json)
		printf("\nserving until interrupted\n");
	fflush(stdout);
	while (!interrupted())
		nanosleep(&nap, NULL);
}

static int run(struct load *l)
{
	struct pen_err err = { 0 };
	int rc = dict_ranks(&l->x);

	if (rc < 0)
		rc = dict_open(&l->x);
	if (rc >= 0)
		return rc;
	rc = load_all(l, &err);
	if (!rc && l->x.comm->rank == 0)
		rc = print(l, &err);
	rc = pen__comm_agree(l->x.comm, rc, &err);
	if (!rc && l->save)
		rc = pen_ddict_persist(l->x.d, l->save, &err);
	rc = dict_agree(&l->x, rc, &err);
	if (rc >= 0)
		return rc;
	if (l->serve)
		serve(l);
	return EXIT_OK;
}

static int take_arg(struct load *l, const struct args *a, int kind)
{
	const char *arg = a->argv[a->at - 1];

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG) {
		l->json |= !strcmp(a->key, "--json");
		l->serve |= !strcmp(a->key, "--serve");
		if (!strcmp(a->key, "--save"))
			l->save = a->value;
		return -1;
	}
	if (kind == ARG_SETTING && !strncmp(arg, "ddict.", 6))
		return dict_setting(&l->x, arg + 6);
	l->batch_set |= kind == ARG_SETTING && !strcmp(a->key, "batch_size");
	return spec_arg(l->spec, a, kind);
}

static int run_load(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_ddict_load,
			  .argc = argc,
			  .argv = argv };
	struct pen_err err = { 0 };
	struct load l = { 0 };
	int kind, rc = -1;

	if (pen_spec_new(&l.spec, &err))
		return complain(&err);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take_arg(&l, &a, kind);
	if (rc < 0)
		rc = run(&l);
	dict_close(&l.x);
	pen_spec_free(l.spec);
	pen__free(l.keys);
	pen__free(l.values);
	pen__free(l.buf);
	return rc;
}

static const char *const examples[] = {
	"penstock ddict load data/",
	"prints loading time and memory use",
	"mpirun -n 4 penstock ddict load data/ ddict.memory=2GB",
	"into the memory of four ranks",
	"penstock ddict load data/ ddict.name=train --serve",
	"serves other processes on this machine until interrupted",
	"penstock ddict load data/ --save train.dict",
	"saves the dictionary; restore=train.dict maps it later",
	NULL,
};

const struct command pen__cmd_ddict_load = {
	.name = "ddict load",
	.args = "PATH... [key=value ...] [--flags]",
	.summary = "load a data set into the memory of many processes",
	.about = "Reads a data set into a dictionary: the number of a sample "
		 "is its key, the bytes of its fields are its value. Under "
		 "mpirun or srun every rank reads and stores a part.",
	.flags = flags,
	.takes_spec = true,
	.ddict = "ddict.",
	.examples = examples,
	.run = run_load,
};
