/*
 * Records from FILE.fai (name, number of letters, offset of the first, letters
 * and bytes per line), which saves one pass over a large file. The index is
 * trusted only if every header is where it says and there is nothing else
 * between records; line ends are checked at a few places here, and again
 * whenever lines are read.
 *
 * Any disagreement (an older .fai, missing names, other line ends) falls back
 * to scanning the file. One case is not detected here: a line that has lost a
 * letter, with another that has gained one. The first read across a line end
 * between the two reports it.
 */
#include "base/mem.h"
#include "format/sequence/fasta.h"

#define FAI_LIMIT ((uint64_t)1 << 30)
#define MOST_RECORDS 65536u
#define MOST_GAP ((size_t)1 << 20)
#define PLAIN_WORTH ((uint64_t)256 << 20)
#define BGZF_WORTH ((uint64_t)32 << 20)
#define LOOKS 8u /* line ends checked per record */

struct entry {
	struct pen_span name;
	uint64_t n, at, bases, width;
};

static bool take_number(const uint8_t **p, const uint8_t *e, uint64_t *v)
{
	const uint8_t *q = *p;

	if (q == e || *q++ != '\t')
		return false;
	for (*v = 0; q < e && *q >= '0' && *q <= '9'; q++) {
		if (*v > INT64_MAX / 16)
			return false;
		*v = *v * 10 + (uint64_t)(*q - '0');
	}
	*p = q;
	return true;
}

/* Parses the next line; false: the end, or not a valid line (*bad). */
static bool take_entry(const struct pen_buf *b, size_t *pos, struct entry *e,
		       bool *bad)
{
	const uint8_t *p, *nl, *end, *tab;

	if (*pos >= b->n)
		return false;
	p = b->p + *pos;
	nl = memchr(p, '\n', b->n - *pos);
	end = nl ? nl : b->p + b->n;
	*pos = (size_t)(end - b->p) + 1;
	tab = memchr(p, '\t', (size_t)(end - p));
	*bad = !tab;
	if (*bad)
		return false;
	e->name = (struct pen_span){ p, (size_t)(tab - p) };
	*bad = !take_number(&tab, end, &e->n) ||
	       !take_number(&tab, end, &e->at) ||
	       !take_number(&tab, end, &e->bases) ||
	       !take_number(&tab, end, &e->width) || tab != end ||
	       (e->n &&
		(!e->bases || e->width <= e->bases || e->width - e->bases > 2));
	return !*bad;
}

static bool is_blank(uint8_t c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

/* Between records: blanks, then one header with this name. *start: offset of
 * its '>' in the gap; *id: offset of the name. */
static bool is_heading(const uint8_t *p, size_t n, struct pen_span name,
		       size_t *start, size_t *id)
{
	size_t i = 0;

	while (i < n && is_blank(p[i]))
		i++;
	*start = i;
	if (i && p[i - 1] != '\n')
		return false;
	if (i == n || p[i++] != '>' || !n || p[n - 1] != '\n' ||
	    memchr(p + i, '\n', n - 1 - i))
		return false;
	while (i < n && (p[i] == ' ' || p[i] == '\t'))
		i++;
	*id = i - *start;
	return name.n <= n - i && !memcmp(p + i, name.p, name.n) &&
	       is_blank(p[i + name.n]);
}

/* Reads the gap between two records; PEN_END: it cannot be a header. */
static int read_gap(struct pen_seq_scan *s, uint64_t from, uint64_t to,
		    struct pen_buf *b)
{
	static const uint8_t none[256];

	if (from > to || to > s->text.text || to - from > MOST_GAP)
		return PEN_END;
	for (b->n = 0; b->n < to - from && !b->bad;)
		pen__buf_put(b, none,
			     to - from - b->n < sizeof(none)
				     ? (size_t)(to - from) - b->n
				     : sizeof(none));
	if (b->bad)
		return pen__seq_nomem(s);
	return b->n ? pen__seq_text_read(&s->text, from, b->p, b->n) : 0;
}

static uint64_t end_of(const struct entry *e)
{
	const uint64_t last = e->n - 1;

	return e->n ? e->at + last / e->bases * e->width + last % e->bases + 1
		    : e->at;
}

/* Checks a few line ends. */
static int look_at_lines(struct pen_seq_scan *s, const struct entry *e)
{
	const uint64_t lines = e->n ? (e->n - 1) / e->bases : 0;
	const uint64_t step = lines / LOOKS + 1;
	uint8_t b[4];
	int rc = 0;

	for (uint64_t i = 0; !rc && i < lines; i += step) {
		const uint64_t at = e->at + i * e->width + e->bases - 1;
		const size_t n = (size_t)(e->width - e->bases);

		rc = pen__seq_text_read(&s->text, at, b, n + 1);
		if (!rc && (is_blank(b[0]) || b[n] != '\n' ||
			    (n == 2 && b[1] != '\r')))
			rc = PEN_END;
	}
	return rc;
}

static int add_record(struct pen_seq_scan *s, const struct entry *e,
		      uint64_t start, uint64_t id)
{
	const unsigned layout =
		e->n <= e->bases || !e->n
			? 0
			: pen__seq_layout(s, (struct pen_seq_layout){
						     e->bases, e->width });
	const uint64_t v[] = { start,  e->at - start, e->n,
			       layout, e->name.n,     e->name.n ? id : 1 };
	int rc;

	if (layout == PEN_SEQ_IRREGULAR)
		return PEN_END;
	rc = pen__seq_record_put(s, v);
	if (!rc && s->keep_names) {
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->names.n);
		pen__buf_put(&s->names, e->name.p, e->name.n);
	}
	return !rc && s->names.bad ? pen__seq_nomem(s) : rc;
}

/* With so many small records, scanning the file is faster. */
static bool has_many(const struct pen_buf *fai)
{
	uint64_t n = 0;

	for (size_t i = 0; i < fai->n; i++)
		n += fai->p[i] == '\n';
	return n > MOST_RECORDS;
}

static int take_fai(struct pen_seq_scan *s, const struct pen_buf *fai)
{
	struct pen_buf gap = { 0 };
	struct entry e;
	uint64_t end = 0, had = 0;
	size_t pos = 0, start, id;
	bool bad = false;
	int rc = 0;

	while (!rc && take_entry(fai, &pos, &e, &bad)) {
		if (e.at > s->text.text || end_of(&e) > s->text.text ||
		    end_of(&e) < e.at)
			rc = PEN_END;
		if (!rc)
			rc = read_gap(s, end, e.at, &gap);
		if (!rc && !is_heading(gap.p, gap.n, e.name, &start, &id))
			rc = PEN_END;
		if (!rc && had &&
		    !start) /* the header would continue a line of letters */
			rc = PEN_END;
		if (!rc)
			rc = look_at_lines(s, &e);
		if (!rc)
			rc = add_record(s, &e, end + start, id);
		end = end_of(&e);
		had = e.n;
	}
	if (!rc && (bad || !s->col[PEN_SEQ_START].n))
		rc = PEN_END;
	if (!rc)
		rc = read_gap(s, end, s->text.text, &gap);
	for (size_t i = 0; !rc && i < gap.n; i++)
		rc = is_blank(gap.p[i]) ? 0 : PEN_END;
	pen__buf_fini(&gap);
	return rc;
}

int pen__fasta_fai(struct pen_seq_scan *s)
{
	struct pen_buf fai = { 0 };
	struct pen_err own = { 0 };
	int rc;

	if (s->p->fai == PEN_SEQ_FAI_NEVER || !s->pk->read_side ||
	    s->text.kind == PEN_SEQ_GZIP ||
	    (s->p->fai == PEN_SEQ_FAI_AUTO &&
	     s->pk->size <
		     (s->text.kind == PEN_SEQ_BGZF ? BGZF_WORTH : PLAIN_WORTH)))
		return PEN_END;
	rc = s->pk->read_side(s->pk, ".fai", FAI_LIMIT, &fai, &own);
	if (!rc && !has_many(&fai)) {
		s->text.text = s->pk->size;
		if (s->text.kind == PEN_SEQ_BGZF) {
			s->text.text = 0;
			rc = pen__seq_text_blocks(&s->text);
		}
		if (!rc)
			rc = take_fai(s, &fai);
	} else {
		rc = PEN_END;
	}
	pen__buf_fini(&fai);
	s->unproven = !rc;
	return rc;
}
