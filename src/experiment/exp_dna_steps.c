/*
 * See exp_dna.h. Everything runs in this process, because the ranks of a job
 * cannot start others: MPI can be initialised only once per rank.
 */
#include "experiment/exp_dna.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/show.h"
#include "comm/comm.h"
#include "doc2vec/doc2vec.h"
#include "make/count_vocab.h"
#include "make/maker.h"
#include "make/synth.h"
#include "make/synth_seqs.h"

typedef unsigned long long ull;

/* The time since `start`, of the slowest rank; 0 or the error of any. */
static int took(struct pen_ranks *ranks, uint64_t start, int rc, double *s,
		struct pen_err *err)
{
	rc = pen_ranks_agree(ranks, rc, err);
	*s = (double)(pen__now_ns() - start) / 1e9;
	return rc ? rc : pen_ranks_reduce(ranks, s, 1, PEN_F64, PEN_MAX, err);
}

/* ---- the files ---- */

/* The first half of the sequences is one class, the second the other. */
static int write_labels(const char *path, uint64_t first, uint64_t n,
			struct pen_err *err)
{
	struct pen_text t = { 0 };
	int rc;

	for (uint64_t i = 0; i < n; i++)
		pen__text_put(&t, i < first ? "0\n" : "1\n", 2);
	rc = t.failed ? pen__fail_nomem(err, path, 2 * n)
		      : pen__text_save(&t, path, err);
	pen__text_fini(&t);
	return rc;
}

int pen__dna_make(const struct pen_session *r, const struct pen_seqs *s,
		  struct pen_err *err)
{
	const struct pen_synth_seqs what = {
		.size = (uint64_t)s->bytes,
		.length = 1024,
		.letters = (enum pen_synth_letters)s->letters
	};
	struct pen_maker *maker = NULL;
	struct pen_synth_made made;
	int rc;

	if (!pen__run_leads(r))
		return 0;
	rc = pen__maker_open(&maker, "posix", NULL, 0, err);
	if (!rc)
		rc = pen__synth_space(s->path, what.size, err);
	if (!rc)
		rc = pen__synth_seqs_make(&what, maker, s->path, &made, err);
	pen__maker_close(maker);
	if (!rc && s->labels[0])
		rc = write_labels(s->labels, made.records / 2, made.records,
				  err);
	return rc;
}

/* ---- the dictionary ---- */

/* Dictionary key % n holds key: with n of them every rank has n shards. */
struct fill {
	struct pen_ddict *dict[PEN_DNA_SHARDS];
	uint32_t n;
	struct pen_loader *loader;
	struct pen_key *keys;
	struct pen_value *values;
};

static int open_fill(struct fill *f, struct pen_ranks *ranks,
		     const struct pen_seqs *s, struct pen_err *err)
{
	const uint64_t size = (uint64_t)pen_ranks_size(ranks);
	char set[3][48];
	const char *const memory[] = { set[0] };
	struct pen_spec *spec;
	int rc;

	/* keys are not spread quite evenly; the index is small */
	snprintf(set[0], sizeof(set[0]), "memory=%llu",
		 (ull)(s->bytes * 1.3 / (double)(f->n * size)) + (8u << 20));
	snprintf(set[1], sizeof(set[1]), "world=%llu", (ull)size);
	snprintf(set[2], sizeof(set[2]), "rank=%d", pen_ranks_rank(ranks));
	for (uint32_t i = 0; i < f->n; i++) {
		rc = pen_ddict_open(&f->dict[i], ranks, memory, 1, err);
		if (rc)
			return rc;
	}
	rc = pen_spec_new(&spec, err);
	if (rc)
		return rc;
	if (!(rc = pen_spec_add_path(spec, s->path, err)) &&
	    !(rc = pen_spec_parse(spec, "format=lines", err)) &&
	    !(rc = pen_spec_parse(spec, set[1], err)) &&
	    !(rc = pen_spec_parse(spec, set[2], err)) &&
	    !(rc = pen_spec_parse(spec, "tail=keep", err)) &&
	    !(rc = pen_spec_parse(spec, "batch_size=1024", err)))
		rc = pen_loader_open(&f->loader, spec, err);
	pen_spec_free(spec);
	f->keys = pen__alloc(1024, sizeof(*f->keys));
	f->values = pen__alloc(1024, sizeof(*f->values));
	if (!rc && (!f->keys || !f->values))
		rc = pen__fail_nomem(err, "batch", 1024 * sizeof(*f->values));
	return rc;
}

static int put_batch(struct fill *f, const struct pen_batch *b,
		     struct pen_err *err)
{
	const struct pen_tensor *t = b->tensors;
	const uint64_t each = t->layout == PEN_RAGGED ? 0
						      : t->nbytes / b->nsamples;
	int rc = 0;

	for (uint32_t k = 0; k < f->n && !rc; k++) {
		uint64_t n = 0;

		for (uint32_t i = 0; i < b->nsamples; i++) {
			const uint8_t *p = t->data;

			if (b->ids[i] % f->n != k)
				continue;
			f->keys[n] = (struct pen_key){ NULL, b->ids[i] };
			f->values[n++] =
				each ? (struct pen_value){ p + i * each, each }
				     : (struct pen_value){
					       p + t->offsets[i],
					       (uint64_t)(t->offsets[i + 1] -
							  t->offsets[i])
				       };
		}
		if (n)
			rc = pen_ddict_put_many(f->dict[k], f->keys, f->values,
						n, err);
	}
	return rc;
}

static int put_all(struct fill *f, struct pen_err *err)
{
	struct pen_batch *b;
	int rc;

	while (!(rc = pen_loader_next(f->loader, &b, err))) {
		rc = put_batch(f, b, err);
		pen_batch_unref(b);
		if (rc)
			break;
	}
	return rc == PEN_END ? 0 : rc;
}

/* Host names are compared: those of a host are neighbours. */
static void put_shard(struct pen_dna_result *out,
		      const struct pen_shard_stats *s)
{
	pen__text_add(&out->shards,
		      "shard %u on %s: %s in all, %s used, %s free, %s keys, "
		      "%.1f %% used, %s\n",
		      out->nshards++, s->host,
		      pen__show_bytes((double)s->total_bytes).s,
		      pen__show_bytes((double)s->used_bytes).s,
		      pen__show_bytes((double)s->free_bytes).s,
		      pen__show_grouped(s->nkeys).s, 100 * s->utilisation,
		      pen__show_counted(s->nfree_blocks, "free block").s);
	out->nkeys += s->nkeys;
	out->value_bytes += s->value_bytes;
	out->used_bytes += s->used_bytes;
	out->total_bytes += s->total_bytes;
}

/* On rank 0. */
static int put_stats(struct fill *f, struct pen_dna_result *out,
		     struct pen_err *err)
{
	for (uint32_t i = 0; i < pen_ddict_nshards(f->dict[0]); i++)
		for (uint32_t k = 0; k < f->n; k++) {
			struct pen_shard_stats s;
			const int rc = pen_ddict_stats(f->dict[k], i, &s,
						       sizeof(s), err);

			if (rc)
				return rc;
			put_shard(out, &s);
		}
	return 0;
}

int pen__dna_fill(struct pen_ranks *ranks, const struct pen_seqs *s,
		  uint32_t nshards, struct pen_dna_result *out,
		  struct pen_err *err)
{
	const uint64_t start = pen__now_ns();
	struct fill f = { .n = nshards };
	int rc = open_fill(&f, ranks, s, err);

	if (!rc)
		rc = put_all(&f, err);
	rc = took(ranks, start, rc, &out->dict_s, err);
	if (!rc && !pen_ranks_rank(ranks))
		rc = put_stats(&f, out, err);
	rc = pen_ranks_agree(ranks, rc, err);
	out->nnodes = (uint32_t)ranks->comm->nnodes;
	pen_loader_close(f.loader);
	for (uint32_t i = 0; i < f.n; i++)
		pen_ddict_close(f.dict[i]);
	pen__free(f.keys);
	pen__free(f.values);
	return rc;
}

/* ---- the vocabulary ---- */

static int count_words(const struct pen_seqs *s, struct pen_dna_result *out,
		       struct pen_err *err)
{
	struct pen_count_opts opts = { 0 };
	struct pen_vocab_job job = { .opts = &opts };
	struct pen_vocab_result found;
	struct pen_text text = { 0 };
	struct pen_spec *spec = NULL;
	int rc;

	if (!(rc = pen__opt_defaults(pen__count_opts, &opts, err)) &&
	    !(rc = pen__opt_set(pen__count_opts, &opts, "k", "4", err)) &&
	    !(rc = pen__opt_set(pen__count_opts, &opts, "pads", "true", err)) &&
	    !(rc = pen_spec_new(&spec, err)) &&
	    !(rc = pen_spec_add_path(spec, s->path, err)) &&
	    !(rc = pen_spec_parse(spec, "format=lines", err))) {
		job.source = spec;
		rc = pen__vocab_build(&job, &text, &found, err);
	}
	if (!rc)
		rc = pen__text_save(&text, s->words, err);
	if (!rc)
		out->nwords = found.facts.nwords;
	pen__text_fini(&text);
	pen__opt_fini(pen__count_opts, &opts);
	pen_spec_free(spec);
	return rc;
}

int pen__dna_vocab(struct pen_ranks *ranks, const struct pen_seqs *s,
		   struct pen_dna_result *out, struct pen_err *err)
{
	const uint64_t start = pen__now_ns();
	int rc = 0;

	/* every host has the file, and needs the words */
	if (!ranks->comm->local_rank)
		rc = count_words(s, out, err);
	return took(ranks, start, rc, &out->vocab_s, err);
}

/* ---- training ---- */

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static ssize_t write_text(void *arg, const char *p, size_t n)
{
	pen__text_put(arg, p, n);
	return (ssize_t)n;
}

int pen__dna_train(struct pen_ranks *ranks, const struct options *o,
		   const char *const *settings, struct pen_dna_result *out,
		   struct pen_err *err)
{
	const uint64_t start = pen__now_ns();
	const cookie_io_functions_t to_text = { .write = write_text };
	FILE *f = fopencookie(&out->report, "w", to_text);
	struct rusage before, after;
	double v[3];
	int n = 0, rc;

	rc = f ? 0 : pen__fail_nomem(err, "doc2vec", 0);
	rc = pen_ranks_agree(ranks, rc, err);
	if (rc)
		return rc;
	while (settings[n])
		n++;
	getrusage(RUSAGE_SELF, &before);
	/* the arguments are not changed */
	rc = doc2vec(o, ranks, (char *const *)(uintptr_t)settings, n, f, err);
	getrusage(RUSAGE_SELF, &after);
	if ((fclose(f) || out->report.failed) && !rc)
		rc = pen__fail_nomem(err, "doc2vec", out->report.n);
	rc = took(ranks, start, rc, &out->real_s, err);
	if (rc)
		return rc;
	v[0] = seconds(after.ru_utime) - seconds(before.ru_utime);
	v[1] = seconds(after.ru_stime) - seconds(before.ru_stime);
	v[2] = (double)after.ru_maxrss * 1024;
	rc = pen_ranks_reduce(ranks, v, 3, PEN_F64, PEN_SUM, err);
	out->user_s = v[0];
	out->system_s = v[1];
	out->peak_bytes = v[2];
	return rc;
}
