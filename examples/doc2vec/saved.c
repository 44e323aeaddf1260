/*
 * See saved.h. The file: a header, the sequences seen in the epoch, words and
 * out with their moments, the documents, and a checksum. It is complete and
 * synced before it gets its name.
 */
#include "saved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define MAGIC 0x3163657632636f64u /* "doc2vec1" */
#define CHUNK 4096		  /* documents */

struct header {
	uint64_t magic, ndocs, nwords, dim, update, seed, updates;
	struct saved run;
};

struct file {
	FILE *f;
	uint64_t hash;
	const char *path;
};

static uint64_t hashed(uint64_t h, const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t v;

	for (; n >= 8; n -= 8, c += 8) {
		memcpy(&v, c, 8);
		h = (h ^ v) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; n--, c++)
		h = (h ^ *c) * 0x9e3779b97f4a7c15u;
	return h;
}

static int put(struct file *f, const void *p, size_t n, struct pen_err *err)
{
	f->hash = hashed(f->hash, p, n);
	return fwrite(p, 1, n, f->f) == n ? 0 : fail_sys(err, f->path);
}

static int take(struct file *f, void *p, size_t n, struct pen_err *err)
{
	if (fread(p, 1, n, f->f) != n)
		return ferror(f->f) ? fail_sys(err, f->path)
				    : fail_at(err, PEN_EDATA, f->path,
					      "is not a complete checkpoint");
	f->hash = hashed(f->hash, p, n);
	return 0;
}

static struct header header_of(const struct trainer *t, const struct saved *s)
{
	const struct model *m = &t->model;
	struct header h = { .magic = MAGIC,
			    .ndocs = s->epoch.nseen,
			    .nwords = m->nwords,
			    .dim = m->dim,
			    .update = m->update,
			    .seed = m->seed,
			    .updates = m->steps,
			    .run = *s };

	h.run.epoch.seen = NULL;
	return h;
}

/* The six arrays of words and out. */
static void arrays_of(const struct model *m, float **v)
{
	float *const all[] = { m->words.at, m->words.mean, m->words.square,
			       m->out.at,   m->out.mean,   m->out.square };

	memcpy(v, all, sizeof(all));
}

static size_t array_bytes(const struct model *m)
{
	return m->nwords * m->stride * sizeof(float);
}

/* Documents [first, first + n) as sequences, for fetch and store. */
static void number(struct sequence *q, uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		q[i] = (struct sequence){ .doc = first + i, .ntargets = 1 };
}

static int each_doc(struct file *f, struct trainer *t, uint64_t ndocs,
		    bool writes, struct pen_err *err)
{
	struct sequence *q = calloc(CHUNK, sizeof(*q));
	const size_t size = doc_bytes(&t->model);
	int rc = q ? 0 : fail_nomem(err, "the checkpoint");

	for (uint64_t at = 0; at < ndocs && !rc; at += CHUNK) {
		const uint64_t rest = ndocs - at;
		const uint32_t n = rest < CHUNK ? (uint32_t)rest : CHUNK;

		number(q, at, n);
		rc = docs_fetch(&t->docs, q, n, err);
		for (uint32_t i = 0; i < n && !rc; i++)
			rc = writes ? put(f, q[i].row, size, err)
				    : take(f, q[i].row, size, err);
		if (!writes && !rc)
			rc = docs_store(&t->docs, q, n, err);
	}
	free(q);
	return rc;
}

static int write_all(struct file *f, const struct saved *s, struct trainer *t,
		     struct pen_err *err)
{
	const struct header h = header_of(t, s);
	float *v[6];
	int rc = put(f, &h, sizeof(h), err);

	if (!rc)
		rc = put(f, s->epoch.seen, epoch_words(&s->epoch) * 8, err);
	arrays_of(&t->model, v);
	for (unsigned i = 0; i < 6 && !rc; i++)
		rc = put(f, v[i], array_bytes(&t->model), err);
	if (!rc)
		rc = each_doc(f, t, h.ndocs, true, err);
	if (!rc)
		rc = put(f, &(uint64_t){ f->hash }, 8, err);
	if (!rc && (fflush(f->f) || fsync(fileno(f->f))))
		rc = fail_sys(err, f->path);
	return rc;
}

static int write_file(const struct saved *s, struct trainer *t,
		      const char *path, struct pen_err *err)
{
	char name[4096];
	struct file f = { .path = name };
	int rc;

	if ((size_t)snprintf(name, sizeof(name), "%s.tmp", path) >=
	    sizeof(name))
		return fail_at(err, PEN_EINVAL, "--checkpoint",
			       "the path is too long");
	f.f = fopen(name, "wbe");
	if (!f.f)
		return fail_sys(err, name);
	rc = write_all(&f, s, t, err);
	if (fclose(f.f) && !rc)
		rc = fail_sys(err, name);
	if (!rc && rename(name, path))
		rc = fail_sys(err, path);
	if (rc)
		unlink(name);
	return rc;
}

int saved_write(const struct saved *s, struct trainer *t, const char *path,
		struct pen_err *err)
{
	const bool first = !pen_ranks_rank(t->ranks);

	return pen_ranks_agree(t->ranks,
			       first ? write_file(s, t, path, err) : 0, err);
}

/* A checkpoint of this data and these settings. */
static int check(const struct header *h, const struct header *want,
		 const char *path, struct pen_err *err)
{
	if (h->magic != MAGIC)
		return fail_at(err, PEN_EDATA, path,
			       "is not a checkpoint of doc2vec");
	if (h->ndocs != want->ndocs || h->nwords != want->nwords)
		return fail_at(err, PEN_EINVAL, path,
			       "belongs to other data: %llu sequences and %llu "
			       "words, not %llu and %llu",
			       (unsigned long long)h->ndocs,
			       (unsigned long long)h->nwords,
			       (unsigned long long)want->ndocs,
			       (unsigned long long)want->nwords);
	if (h->dim != want->dim || h->update != want->update ||
	    h->seed != want->seed)
		return fail_at(err, PEN_EINVAL, path,
			       "was saved with other settings; use the same "
			       "--dim, --update and --seed");
	return 0;
}

static int read_all(struct file *f, struct saved *s, struct trainer *t,
		    struct pen_err *err)
{
	const struct header want = header_of(t, s);
	uint64_t *seen = s->epoch.seen, hash;
	struct header h;
	float *v[6];
	int rc = take(f, &h, sizeof(h), err);

	if (!rc)
		rc = check(&h, &want, f->path, err);
	if (rc)
		return rc;
	*s = h.run;
	s->epoch.seen = seen;
	t->model.steps = h.updates;
	rc = take(f, seen, epoch_words(&s->epoch) * 8, err);
	arrays_of(&t->model, v);
	for (unsigned i = 0; i < 6 && !rc; i++)
		rc = take(f, v[i], array_bytes(&t->model), err);
	if (!rc)
		rc = each_doc(f, t, h.ndocs, false, err);
	hash = f->hash;
	if (!rc)
		rc = take(f, &h.magic, 8, err);
	if (!rc && (h.magic != hash || fgetc(f->f) != EOF))
		rc = fail_at(err, PEN_EDATA, f->path,
			     "is damaged: the checksum is wrong");
	return rc;
}

static int read_file(struct saved *s, struct trainer *t, const char *path,
		     struct pen_err *err)
{
	struct file f = { .path = path, .f = fopen(path, "rbe") };
	int rc;

	if (!f.f)
		return fail_sys(err, path);
	rc = read_all(&f, s, t, err);
	fclose(f.f);
	return rc;
}

int saved_read(struct saved *s, struct trainer *t, const char *path,
	       struct pen_err *err)
{
	const bool first = !pen_ranks_rank(t->ranks);
	uint64_t *seen = s->epoch.seen;
	struct model *m = &t->model;
	float *v[6];
	int rc = pen_ranks_agree(t->ranks,
				 first ? read_file(s, t, path, err) : 0, err);

	if (!rc)
		rc = pen_ranks_broadcast(t->ranks, s, sizeof(*s), 0, err);
	s->epoch.seen = seen;
	if (!rc)
		rc = pen_ranks_broadcast(t->ranks, &m->steps, 8, 0, err);
	arrays_of(m, v);
	for (unsigned i = 0; i < 6 && !rc; i++)
		rc = pen_ranks_broadcast(t->ranks, v[i], array_bytes(m), 0,
					 err);
	/* rank 0 holds what all ranks took of the epoch */
	if (!first)
		epoch_clear(&s->epoch);
	return rc;
}
