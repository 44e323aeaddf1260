/*
 * See synth_seqs.h. Threads make blocks of text, which return in order to the
 * caller, which writes them. A block is defined by its start (record, letter,
 * remaining size); its end follows from that, so the caller finds the start of
 * the next block without making it.
 */
#include "make/synth_seqs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/ring.h"
#include "base/rng.h"
#include "base/team.h"
#include "make/maker_int.h"

#define BLOCK ((uint64_t)983040) /* letters: a multiple of words and lines */
#define LINE 60u

/* A position in the file. */
struct place {
	uint64_t record, letter; /* in that record */
	uint64_t n;		 /* its number of letters */
	uint64_t left;		 /* of the size of this half */
	bool second;		 /* half */
	bool over;
};

struct block {
	uint64_t serial;
	struct place from;
	struct pen_buf text;
	uint8_t *letters; /* BLOCK, plus some slack for writing past the end */
};

struct line {
	const struct pen_synth_seqs *s;
	char four[2][256][4]; /* DNA, RNA: four letters per byte */
	char one[256];	      /* proteins, and DNA that is not uniform */
	struct block *block;
	unsigned nblocks;
	struct pen_ring *todo;
	struct pen_order *done;
	struct pen_team *team;
};

/* Amino acids, in 256ths, as frequent as in UniProtKB/Swiss-Prot. */
static const struct {
	char c;
	uint8_t n;
} acids[] = { { 'L', 25 }, { 'A', 21 }, { 'G', 18 }, { 'V', 18 }, { 'E', 17 },
	      { 'S', 17 }, { 'I', 15 }, { 'K', 15 }, { 'R', 14 }, { 'D', 14 },
	      { 'T', 14 }, { 'P', 12 }, { 'N', 10 }, { 'Q', 10 }, { 'F', 10 },
	      { 'Y', 7 },  { 'M', 6 },	{ 'H', 6 },  { 'C', 4 },  { 'W', 3 } };

static void fill_tables(struct line *l)
{
	unsigned at = 0;

	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < 4; k++) {
			l->four[0][i][k] = "ATCG"[i >> 2 * k & 3];
			l->four[1][i][k] = "AUCG"[i >> 2 * k & 3];
		}
	for (; l->s->letters == PEN_SYNTH_AT && at < 256; at++)
		l->one[at] = at < 90 ? 'A' : at < 180 ? 'T' : "CG"[at & 1];
	for (size_t i = 0; i < sizeof(acids) / sizeof(*acids); i++)
		for (unsigned k = 0; k < acids[i].n && at < 256; k++)
			l->one[at++] = acids[i].c;
	while (at < 256)
		l->one[at++] = 'L';
}

/* ---- records ---- */

/* Logarithms of real lengths are roughly normal; this approximates that. */
static uint64_t length_of(const struct pen_synth_seqs *s, uint64_t record)
{
	struct pen_rng r = pen__rng(s->seed ^ 0x1e4974, record);
	double z = -6, n;

	if (!s->realistic)
		return s->length;
	for (int i = 0; i < 12; i++)
		z += pen__rng_double(&r);
	n = (double)s->length * exp(0.7 * z);
	return n < 1 ? 1 : (uint64_t)n;
}

static bool halves(const struct pen_synth_seqs *s)
{
	return s->letters == PEN_SYNTH_BOTH || s->letters == PEN_SYNTH_AT;
}

static void settle(const struct pen_synth_seqs *s, struct place *p)
{
	if (!p->left && halves(s) && !p->second) {
		p->second = true;
		p->left = s->size / 2;
	}
	p->over = !p->left;
	p->letter = 0;
	p->n = length_of(s, p->record);
	if (p->n > p->left)
		p->n = p->left;
}

static void next_record(const struct pen_synth_seqs *s, struct place *p)
{
	p->left -= p->n < p->left ? p->n + 1 : p->n;
	p->record++;
	settle(s, p);
}

/* ---- letters ---- */

/* n letters from p->letter on, which starts a word; writes up to 32 more. */
static void make_letters(const struct line *l, const struct place *p,
			 uint64_t n, uint8_t *to)
{
	const enum pen_synth_letters what = l->s->letters;
	const bool four = what != PEN_SYNTH_PROTEIN &&
			  !(what == PEN_SYNTH_AT && p->second);
	const bool rna = what == PEN_SYNTH_RNA ||
			 (what == PEN_SYNTH_BOTH && p->second);
	const unsigned per = four ? 32 : 8;
	const uint64_t key = pen__rng_key(l->s->seed, p->record);
	uint64_t word = p->letter / per;

	for (uint64_t i = 0; i < n; i += per, word++, to += per) {
		uint64_t v = pen__rng_at(key, word);

		for (unsigned k = 0; k < 8; k++, v >>= 8) {
			if (four)
				memcpy(to + 4 * k, l->four[rna][v & 255], 4);
			else
				to[k] = (uint8_t)l->one[v & 255];
		}
	}
}

static void put_lines(struct pen_buf *b, const uint8_t *p, uint64_t n,
		      bool ends)
{
	for (uint64_t at = 0; at < n; at += LINE) {
		const uint64_t k = n - at < LINE ? n - at : LINE;

		pen__buf_put(b, p + at, k);
		if (k == LINE || ends)
			pen__buf_put(b, "\n", 1);
	}
}

/* Letters [letter, letter + n) of the record, with the text around them. */
static void put_piece(const struct line *l, struct block *b,
		      const struct place *p, uint64_t n)
{
	const bool ends = p->letter + n == p->n;
	char id[32];
	int len = snprintf(id, sizeof(id), "design_id_%" PRIu64 "\n",
			   p->record + 1);

	make_letters(l, p, n, b->letters);
	if (!l->s->fasta) {
		pen__buf_put(&b->text, b->letters, n);
		if (ends) {
			pen__buf_put(&b->text, ",", 1);
			pen__buf_put(&b->text, id, (size_t)len);
		}
		return;
	}
	if (!p->letter) {
		pen__buf_put(&b->text, ">", 1);
		pen__buf_put(&b->text, id, (size_t)len);
	}
	put_lines(&b->text, b->letters, n, ends);
}

/* Advances by one block and makes it unless b is NULL; returns its letters. */
static uint64_t one_block(const struct line *l, struct place *p,
			  struct block *b)
{
	uint64_t done = 0;

	while (!p->over && done < BLOCK) {
		uint64_t n = p->n - p->letter;

		/* only split between pieces: words and lines stay together */
		if (n > BLOCK - done && done)
			break;
		n = n < BLOCK ? n : BLOCK;
		if (b)
			put_piece(l, b, p, n);
		done += n;
		p->letter += n;
		if (p->letter == p->n)
			next_record(l->s, p);
	}
	return done;
}

static void work(void *arg, unsigned i)
{
	struct line *l = arg;
	struct block *b;

	(void)i;
	while ((b = pen__ring_pop(l->todo, NULL, true))) {
		struct place p = b->from;

		b->text.n = 0;
		one_block(l, &p, b);
		pen__order_put(l->done, b->serial, b);
	}
}

/* ---- the file ---- */

static int line_start(struct line *l, struct pen_err *err)
{
	const unsigned n = l->s->threads ? l->s->threads : pen__cpus();

	fill_tables(l);
	l->nblocks = 2 * n + 1;
	l->block = pen__calloc(l->nblocks, sizeof(*l->block));
	if (!l->block || pen__ring_new(&l->todo, l->nblocks, -1) < 0 ||
	    pen__order_new(&l->done, l->nblocks) < 0)
		return pen__fail_nomem(err, "sequences",
				       l->nblocks * sizeof(*l->block));
	for (unsigned i = 0; i < l->nblocks; i++) {
		l->block[i].letters = pen__alloc(BLOCK + 64, 1);
		if (!l->block[i].letters)
			return pen__fail_nomem(err, "sequences", BLOCK);
	}
	return pen__team_start(&l->team, n, "pen-seqs", work, l, err);
}

static void line_end(struct line *l)
{
	if (l->todo)
		pen__ring_close(l->todo);
	pen__team_join(l->team);
	pen__ring_free(l->todo);
	pen__order_free(l->done);
	for (unsigned i = 0; l->block && i < l->nblocks; i++) {
		pen__buf_fini(&l->block[i].text);
		pen__free(l->block[i].letters);
	}
	pen__free(l->block);
}

/* Queues the next block; false if there are no more. */
static bool ask(struct line *l, struct place *p, struct block *b,
		uint64_t serial, struct pen_synth_made *made)
{
	if (p->over)
		return false;
	b->serial = serial;
	b->from = *p;
	made->letters += one_block(l, p, NULL);
	made->records = p->record;
	pen__ring_push(l->todo, 0, b);
	return true;
}

static int write_blocks(struct line *l, struct pen_sink *out,
			struct pen_synth_made *made, struct pen_err *err)
{
	const struct pen_synth_seqs *s = l->s;
	struct place p = { .left = halves(s) ? s->size / 2 : s->size };
	uint64_t asked = 0;
	int rc = 0;

	settle(s, &p);
	while (asked < l->nblocks && ask(l, &p, &l->block[asked], asked, made))
		asked++;
	for (uint64_t i = 0; !rc && i < asked; i++) {
		struct block *b = pen__order_get(l->done, NULL);

		rc = b->text.bad
			     ? pen__fail_nomem(err, "sequences", BLOCK)
			     : pen__sink_write(out, b->text.p, b->text.n, err);
		made->bytes += b->text.n;
		if (!rc && s->tick && s->tick(s->arg, made->bytes))
			rc = pen__fail(err, P_INTERRUPTED, "sequences",
				       "interrupted");
		if (!rc && ask(l, &p, b, asked, made))
			asked++;
	}
	return rc;
}

int pen__synth_seqs_write(const struct pen_synth_seqs *s, struct pen_sink *out,
			  struct pen_synth_made *made, struct pen_err *err)
{
	struct line l = { .s = s };
	int rc = line_start(&l, err);

	*made = (struct pen_synth_made){ 0 };
	if (!rc)
		rc = write_blocks(&l, out, made, err);
	line_end(&l);
	return rc;
}

int pen__synth_seqs_make(const struct pen_synth_seqs *s,
			 const struct pen_maker *m, const char *path,
			 struct pen_synth_made *made, struct pen_err *err)
{
	struct pen_sink *sink = NULL;
	int rc = pen__sink_open(&sink, m->st, path, err), end;

	if (rc)
		return rc;
	rc = pen__synth_seqs_write(s, sink, made, err);
	end = pen__sink_close(sink, !rc, rc ? NULL : err);
	return rc ? rc : end;
}
