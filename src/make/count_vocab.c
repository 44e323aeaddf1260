/*
 * See count_vocab.h. Threads take batches of letters from one loader, one at a
 * time, and count each in their own table.
 */
#include "make/count_vocab.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "engine/spec.h"

#define BATCH                                                                  \
	(UINT64_C(1) << 17) /* bytes, approximate: small next to the caches */
#define USUAL 128u	    /* sequences */

struct counting {
	const struct pen_vocab_job *job;
	struct pen_loader *l;
	struct pen_counts *counts; /* one per thread */
	pthread_mutex_t lock;	   /* protects all below, and the loader */
	uint64_t done, bytes, total;
	int rc;
	struct pen_err err;
};

/* The next batch, or NULL at the end. */
static struct pen_batch *next_batch(struct counting *c, unsigned thread)
{
	struct pen_batch *b = NULL;
	uint64_t done = 0;
	int rc;

	pthread_mutex_lock(&c->lock);
	if (!c->rc) {
		rc = pen_loader_next(c->l, &b, &c->err);
		c->rc = rc;
		if (rc)
			b = NULL;
		else
			done = c->done += b->nsamples;
	}
	pthread_mutex_unlock(&c->lock);
	/* in one thread only, and outside the lock */
	if (b && !thread && c->job->tick &&
	    c->job->tick(c->job->arg, done, c->total, c->bytes)) {
		pthread_mutex_lock(&c->lock);
		c->rc = c->rc ? c->rc : PEN_ECLOSED;
		pthread_mutex_unlock(&c->lock);
	}
	return b;
}

static bool is_letters(const char *name, enum pen_dtype dtype)
{
	return dtype == PEN_U8 && strcmp(name, "seq") == 0;
}

static const struct pen_tensor *letters_of(const struct pen_batch *b)
{
	for (uint32_t i = 0; i < b->ntensors; i++)
		if (is_letters(b->tensors[i].name, b->tensors[i].dtype))
			return &b->tensors[i];
	return NULL;
}

static void count_batch(struct pen_counts *to, const struct pen_batch *b,
			const struct pen_tensor *x)
{
	const size_t row = b->nsamples ? x->nbytes / b->nsamples : 0;

	for (uint32_t i = 0; i < b->nsamples; i++) {
		size_t from = i * row, n = row;

		if (x->layout == PEN_RAGGED) {
			from = (size_t)x->offsets[i];
			n = (size_t)(x->offsets[i + 1] - x->offsets[i]);
		} else if (x->layout == PEN_PADDED) {
			n = (size_t)x->shapes[i];
			from += x->pad_before ? row - n : 0;
		}
		pen__counts_add(to, (const uint8_t *)x->data + from, n);
	}
}

/* Settings can change the type of the data. */
static void no_letters(struct counting *c)
{
	pthread_mutex_lock(&c->lock);
	c->rc = pen__fail(&c->err, P_CONFLICT, "seq",
			  "the field is not delivered as letters; omit "
			  "fields=, cast= and take=");
	pthread_mutex_unlock(&c->lock);
}

static void work(void *arg, unsigned thread)
{
	struct counting *c = arg;
	struct pen_batch *b;

	while ((b = next_batch(c, thread))) {
		const struct pen_tensor *x = letters_of(b);

		if (x)
			count_batch(&c->counts[thread], b, x);
		else
			no_letters(c);
		pen_batch_unref(b);
	}
}

static int set_number(struct pen_spec *s, const char *key, uint64_t v,
		      struct pen_err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return pen_spec_set(s, key, text, err);
}

static int set_all(struct pen_spec *s, struct pen_err *err)
{
	static const char *const set[] = {
		"epochs=1",	 "sampler=sequential", "shuffle=false",
		"tail=keep",	 "drop_last=false",    "pack=0",
		"batch_tokens=0"
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(set) / sizeof(set[0]); i++)
		rc = pen_spec_parse(s, set[i], err);
	return rc ? rc : set_number(s, "batch_size", USUAL, err);
}

/* Sequences per batch, estimated from the data. */
static uint64_t batch_of(const struct pen_dataset *ds)
{
	const uint64_t n = pen_dataset_nsamples(ds);
	const uint64_t each = n ? pen_dataset_nbytes(ds) / n + 1 : 1;

	return each > BATCH ? 1 : BATCH / each > 65536 ? 65536 : BATCH / each;
}

/*
 * Uses batches of about 100 kB. The size of a sequence is only known once the
 * data is open, so it is opened again if that is far from the default.
 */
static int open_loader(struct counting *c, struct pen_err *err)
{
	const struct pen_dataset *ds;
	struct pen_dataset *own = NULL;
	struct pen_spec *s;
	bool found = false;
	uint64_t n;
	int rc = pen_spec_copy(&s, c->job->source, err);

	if (rc)
		return rc;
	rc = set_all(s, err);
	if (!rc)
		rc = pen_loader_open(&c->l, s, err);
	if (rc == PEN_ENOMEM) /* batches of genomes */
		rc = pen_dataset_open(&own, s, err);
	if (rc)
		goto out;
	ds = c->l ? pen_loader_dataset(c->l) : own;
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++)
		found = found || is_letters(pen_dataset_field(ds, i)->name,
					    pen_dataset_field(ds, i)->dtype);
	n = batch_of(ds);
	c->total = pen_dataset_nsamples(ds);
	c->bytes = pen_dataset_nbytes(ds);
	if (!found) {
		rc = pen__fail(err, P_NO_SUCH_FIELD, s->paths[0],
			       "not sequence data: %s has no field 'seq' "
			       "(vocab does not accept tokens=)",
			       pen_dataset_format(ds));
	} else if (!c->l || n < USUAL / 8 || n > USUAL * 8) {
		pen_loader_close(c->l);
		c->l = NULL;
		rc = set_number(s, "batch_size", n, err);
		if (!rc)
			rc = pen_loader_open(&c->l, s, err);
	}
	if (!rc && c->job->opened)
		c->job->opened(pen_loader_dataset(c->l));
out:
	pen_dataset_close(own);
	pen_spec_free(s);
	return rc;
}

static int count_all(struct counting *c, uint32_t n, struct pen_err *err)
{
	struct pen_team *team;
	int rc = pen__counts_specials(c->job->opts, err);

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = pen__counts_init(&c->counts[i], c->job->opts, err);
	if (!rc)
		rc = open_loader(c, err);
	if (!rc)
		rc = pen__team_start(&team, n, "count", work, c, err);
	if (rc)
		return rc;
	pen__team_join(team);
	if (c->rc == PEN_ECLOSED)
		return pen__fail(err, P_INTERRUPTED, NULL, "interrupted");
	if (c->rc != PEN_END) {
		if (err)
			*err = c->err;
		return c->rc;
	}
	for (uint32_t i = 1; i < n; i++)
		pen__counts_join(&c->counts[0], &c->counts[i]);
	return 0;
}

int pen__vocab_build(const struct pen_vocab_job *job, struct pen_text *text,
		     struct pen_vocab_result *out, struct pen_err *err)
{
	const uint64_t start = pen__now_ns();
	const uint32_t n = job->threads ? job->threads : pen__cpus();
	struct counting c = { .job = job, .lock = PTHREAD_MUTEX_INITIALIZER };
	int rc;

	*out = (struct pen_vocab_result){ .threads = n };
	c.counts = pen__calloc(n, sizeof(*c.counts));
	if (!c.counts)
		return pen__fail_nomem(err, "words", n * sizeof(*c.counts));
	rc = count_all(&c, n, err);
	pen_loader_close(c.l);
	if (!rc) {
		out->nsamples = c.done;
		out->nletters = c.counts[0].nletters;
		rc = pen__counts_text(&c.counts[0], job->opts, text,
				      &out->facts, err);
	}
	for (uint32_t i = 0; i < n; i++)
		pen__counts_fini(&c.counts[i]);
	pen__free(c.counts);
	out->seconds = (double)(pen__now_ns() - start) * 1e-9;
	return rc;
}
