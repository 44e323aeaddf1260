/*
 * What the formats of sequences share (lines, fasta, fastq): finding records
 * in a text that may be compressed, keeping where they are in a few bytes
 * each, cutting them into samples, and giving letters to the tokeniser.
 *
 * A text is what an object holds, inflated where it is gzip or bgzip; all
 * offsets of records are into the text. A sample is always one range of it.
 */
#ifndef PEN_FORMAT_SEQUENCE_SEQUENCE_H
#define PEN_FORMAT_SEQUENCE_SEQUENCE_H

#include <locale.h>

#include "format/ahead.h"
#include "format/window.h"
#include "token/token.h"

/* ---- columns: a number for each of many things, in few bytes ---- */

struct pen_column {
	const uint8_t *p;     /* n numbers of `width` bytes, above a base: */
	const uint8_t *bases; /* of each 64 of them, a u64; or NULL: */
	uint64_t base, step;  /* the base of all; width 0: base + k * step */
	uint64_t n;
	unsigned width;
};

/* Numbers as they come. */
struct pen_list {
	uint64_t *v;
	uint64_t n, cap;
};
bool pen__list_grow(struct pen_list *);
static inline bool pen__list_add(struct pen_list *l, uint64_t v)
{
	if (l->n == l->cap && !pen__list_grow(l))
		return false;
	l->v[l->n++] = v;
	return true;
}
void pen__list_fini(struct pen_list *);

void pen__column_put(struct pen_buf *, const struct pen_list *);
bool pen__column_take(struct pen_bytes *, struct pen_column *);
/* The last one that is not above v, of a column that never falls; its first
 * is not above v. */
uint64_t pen__column_find(const struct pen_column *, uint64_t v);

static inline uint64_t pen__column_at(const struct pen_column *c, uint64_t k)
{
	uint64_t v = 0, base = c->base;

	if (!c->width)
		return base + k * c->step;
	if (c->bases)
		memcpy(&base, c->bases + (k >> 6) * 8, 8);
	switch (c->width) { /* this is a little-endian machine */
	case 1:
		return base + c->p[k];
	case 2:
		memcpy(&v, c->p + k * 2, 2);
		return base + v;
	case 4:
		memcpy(&v, c->p + k * 4, 4);
		return base + v;
	default:
		memcpy(&v, c->p + k * 8, 8);
		return base + v;
	}
}

/* ---- the text of an object ---- */

enum pen_seq_kind { PEN_SEQ_PLAIN, PEN_SEQ_GZIP, PEN_SEQ_BGZF };

struct pen_seq_text {
	struct pen_peek *pk;
	struct pen_err *err;
	uint64_t limit; /* bytes a text of gzip may have */
	enum pen_seq_kind kind;
	struct pen_window win;
	struct pen_ahead *ahead; /* of large plain text */
	uint64_t end;		 /* of blocks in the object */
	uint64_t at;		 /* where in it the next piece is, */
	uint64_t text;		 /* and where in the text */
	uint8_t *out;		 /* inflated */
	size_t cap;
	struct pen_scratch scratch;
	struct pen_list raw, blocks; /* bgzip: offsets of blocks, and one more,
					in the object and in the text */
};
int pen__seq_text_open(struct pen_seq_text *, struct pen_peek *, uint64_t limit,
		       struct pen_err *err);
void pen__seq_text_close(struct pen_seq_text *);
/* The next piece; PEN_END after the last. */
int pen__seq_text_next(struct pen_seq_text *, struct pen_span *out);
/* bgzip: where blocks are, by FILE.gzi when it is right, else by a walk from
 * one to the next; nothing is inflated. */
int pen__seq_text_blocks(struct pen_seq_text *);
/* n bytes at `at` of a text whose blocks are known. */
int pen__seq_text_read(struct pen_seq_text *, uint64_t at, void *to, size_t n);

/* Bytes of the block that begins at p; 0: none does, *more: not in so few
 * bytes. */
size_t pen__bgzf_block(const uint8_t *p, size_t n, bool *more);
#define PEN_BGZF_MOST 65536u /* bytes of a block, either way */
#define PEN_BGZF_HEAD 18u    /* bytes of a head as everyone writes it */
/* All blocks in `raw`, to exactly n bytes: 0, PEN_EDATA, PEN_ENOMEM. */
int pen__bgzf_unpack(struct pen_scratch *, struct pen_span raw, uint8_t *to,
		     size_t n);

/* ---- bytes ---- */

/* Nothing but zeros: after gzip's data these are no error, as what writes in
 * blocks leaves some, and gzip(1) passes over them. */
static inline bool pen__seq_zeros(const uint8_t *p, size_t n)
{
	return n && !*p && !memcmp(p, p + 1, n - 1);
}
/* The first of n bytes that is no printable ASCII (a blank is none), or n. */
size_t pen__seq_odd(const uint8_t *p, size_t n);
/* The same, and commas and semicolons count, too. */
size_t pen__seq_stop(const uint8_t *p, size_t n);
/* Reversed and complemented, into other memory; rna: A becomes U. Letters are
 * as IUPAC has them, small ones stay small, all else stays as it is. */
void pen__seq_reverse(const uint8_t *from, uint8_t *to, size_t n, bool rna);
/* All but blanks and line ends; at most n after the first `skip`. How many. */
size_t pen__seq_squeeze(struct pen_span from, uint8_t *to, uint64_t skip,
			size_t n);
/* Has it a U, and no T? */
bool pen__seq_is_rna(const uint8_t *p, size_t n);

/* ---- records ---- */

enum pen_seq_column {
	PEN_SEQ_START, /* first byte of a record; one more: of the text's end */
	PEN_SEQ_HEAD,  /* bytes before the first letter */
	PEN_SEQ_LETTERS,
	PEN_SEQ_LAYOUT,	 /* of the lines of letters */
	PEN_SEQ_ID,	 /* bytes of the id */
	PEN_SEQ_ID_AT,	 /* where it begins: in the record, or after letters */
	PEN_SEQ_QUALITY, /* bytes from the first letter to the first quality */
	PEN_SEQ_QLAYOUT, /* of the lines of qualities */
	PEN_SEQ_LABEL,	 /* bits of a double, or whole, ^ PEN_SEQ_SIGN */
	/* irregular records: which, and where every 4096th letter is */
	PEN_SEQ_ODD,
	PEN_SEQ_ODD_FIRST,
	PEN_SEQ_MARK,
	PEN_SEQ_WINDOWS, /* samples before each record; one more */
	PEN_SEQ_NAMES,	 /* where the record's name begins in the names */
	/* samples by intervals */
	PEN_SEQ_RECORD,
	PEN_SEQ_INTERVAL,
	/* blocks of bgzip: in the object, in the text; one more */
	PEN_SEQ_RAW,
	PEN_SEQ_BLOCK,
	PEN_SEQ_NCOLUMNS
};

#define PEN_SEQ_SIGN ((uint64_t)1 << 63) /* so that they are in order */

/* Lines of equal length: `bases` letters in `width` bytes, all but the last.
 * Layout 0 is one line, PEN_SEQ_IRREGULAR any lines. */
#define PEN_SEQ_IRREGULAR 255u
#define PEN_SEQ_MARK_EVERY 4096u
struct pen_seq_layout {
	uint64_t bases, width;
};

/* Lines of letters or of qualities, as they come. */
struct pen_seq_lines {
	uint64_t first;	       /* where the first letter is */
	uint64_t n;	       /* letters of all lines, */
	uint64_t now;	       /* and of the line at hand, */
	uint64_t line;	       /* which begins here */
	uint64_t bases, width; /* of the first line */
	bool closed;	       /* a shorter line came: the last, if regular */
	bool irregular;
	uint8_t blank; /* fastq: one in the line at hand, which may end it */
};

/* lines: the first second column that is no number. */
struct pen_seq_odd {
	uint64_t line; /* from 1; 0: there is none */
	uint8_t n;     /* bytes of it, the first ones */
	uint8_t text[31];
	bool others; /* are numbers, as far as was looked */
};

struct pen_seqs;
struct pen_seq_scan {
	const struct pen_seqs *p;
	struct pen_peek *pk;
	struct pen_err *err;
	struct pen_seq_text text;
	struct pen_list col[PEN_SEQ_NCOLUMNS];
	struct pen_seq_layout layout[PEN_SEQ_IRREGULAR];
	unsigned nlayouts; /* 0 is one of them */
	struct pen_buf names;
	bool unproven; /* by a .fai: nobody has looked at all lines */
	/* the record at hand */
	int mode;
	uint64_t at;   /* of the byte at hand in the text */
	uint64_t line; /* its number, from 1 */
	uint64_t start, id, id_at;
	/* of a heading: 0 before the id, 1 in it, 2 after; lines: what the
	 * second column is after, a blank or what separates; 0: no column */
	int word;
	bool keep_names;
	struct pen_seq_lines letters, quality;
	bool cr;	    /* the last byte was one */
	uint8_t text64[64]; /* lines: the second column; others: the id */
	uint64_t gap;	    /* bytes before it, */
	uint64_t blanks;    /* and those at its end */
	struct pen_seq_odd odd;
	bool floats, no_labels;
};

/* One line more or less: see sequence_index.c. All return 0 or an error, which
 * names the line and the record at hand. */
int pen__seq_fail(struct pen_seq_scan *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The record at hand, or the last one: "record 7 ('chr7')". */
struct pen_seq_name {
	char s[144];
};
struct pen_seq_name pen__seq_record(const struct pen_seq_scan *);
int pen__seq_nomem(struct pen_seq_scan *);
void pen__seq_lines_begin(struct pen_seq_lines *, uint64_t at);
/* Letters, blanks and line ends from p on, to the line's end or that of the
 * bytes: *used, *ended: the line did. */
int pen__seq_lines_take(struct pen_seq_scan *, struct pen_seq_lines *,
			struct pen_span p, size_t *used, bool *ended);
/* Which layout the lines have, now that all were seen. */
int pen__seq_lines_end(struct pen_seq_scan *, struct pen_seq_lines *,
		       uint64_t *layout);
/* The number of these lines' layout; PEN_SEQ_IRREGULAR: too many kinds. */
unsigned pen__seq_layout(struct pen_seq_scan *, struct pen_seq_layout);
/* Has a line, of which these are the next bytes, a CR only at its end? A file
 * whose lines end with nothing else would be one long line. */
bool pen__seq_one_line(struct pen_seq_scan *, const uint8_t *, size_t n);
/* The bytes of a heading: its first word is the id. */
int pen__seq_heading(struct pen_seq_scan *, struct pen_span);
int pen__seq_put(struct pen_seq_scan *, enum pen_seq_column, uint64_t v);
/* fasta, fastq: its id is known, and letters begin. */
int pen__seq_heading_end(struct pen_seq_scan *);

/* The format's own: a piece of text, and its end. */
struct pen_seq_ops {
	int (*piece)(struct pen_seq_scan *, struct pen_span);
	int (*end)(struct pen_seq_scan *);
	/* Records from what lies beside, if that is right; PEN_END: it is
	 * not. May be NULL. */
	int (*aside)(struct pen_seq_scan *);
	bool lines, quality; /* of such kinds */
};

/* ---- intervals ---- */

struct pen_seq_interval {
	uint64_t from, to;
	uint32_t name, name_len; /* in the file's bytes */
	uint32_t line;		 /* of the file, from 1 */
	bool minus;
	double label;
};
struct pen_seq_bed {
	struct pen_buf file;
	struct pen_seq_interval *v;
	uint64_t n, hash;
	uint32_t *slot; /* by name: the first interval + 1; then next[] */
	uint32_t *next;
	uint64_t mask;
	bool labels; /* the fourth column is numbers throughout */
	bool whole;  /* ... without fractions */
};
int pen__seq_bed_read(struct pen_seq_bed *, const char *path, struct pen_err *);
void pen__seq_bed_fini(struct pen_seq_bed *);
/* The first interval of this name, or UINT32_MAX; others by next[]. */
uint32_t pen__seq_bed_find(const struct pen_seq_bed *, const void *, size_t);

/* ---- a data set ---- */

/* The records of one object. */
struct pen_seq_part {
	enum pen_seq_kind kind;
	uint64_t nrecords, nsamples, text;
	bool unproven, floats, labels, ids;
	uint64_t shortest, longest; /* letters of samples */
	uint64_t longest_range, longest_id;
	struct pen_seq_odd odd;
	struct pen_column col[PEN_SEQ_NCOLUMNS];
	struct pen_seq_layout layout[PEN_SEQ_IRREGULAR + 1];
	struct pen_span names;
	uint64_t run;	/* samples fetched together */
	uint64_t group; /* bgzip: blocks of a unit */
};

/* From what index() made; hash: of the intervals then. False: damaged. */
bool pen__seq_part_take(struct pen_span blob, struct pen_seq_part *,
			uint64_t *hash);

enum { PEN_SEQ_RC_NONE, PEN_SEQ_RC_ALWAYS, PEN_SEQ_RC_RANDOM };
enum { PEN_SEQ_AS_AUTO, PEN_SEQ_AS_DNA, PEN_SEQ_AS_RNA };
enum { PEN_SEQ_LAST_KEEP, PEN_SEQ_LAST_DROP, PEN_SEQ_LAST_BACK };
enum { PEN_SEQ_FAI_AUTO, PEN_SEQ_FAI_ALWAYS, PEN_SEQ_FAI_NEVER };
enum {
	PEN_SEQ_COLUMN_AUTO,
	PEN_SEQ_COLUMN_ID,
	PEN_SEQ_COLUMN_LABEL,
	PEN_SEQ_COLUMN_NONE
};
enum { PEN_SEQ_RAW_BYTES, PEN_SEQ_BGZIP };

/* Fields besides the tokeniser's; the order they come in. */
enum {
	PEN_SEQ_F_ID,
	PEN_SEQ_F_LABEL,
	PEN_SEQ_F_QUALITY,
	PEN_SEQ_F_LENGTH,
	PEN_SEQ_NFIELDS
};

struct pen_seqs {
	/* options */
	struct pen_token_opts token;
	uint64_t window, step, shift, gzip_limit;
	int last, rc, complement, fai, column, compress;
	char *bed_path, *fields;
	bool header, index;
	uint64_t line_width;
	/* from open() on */
	const struct pen_seq_ops *ops;
	struct pen_tokens *tokens;
	struct pen_seq_bed bed;
	locale_t c; /* numbers are written with a point everywhere */
	bool want[PEN_SEQ_NFIELDS]; /* asked for */
	/* from bind() on */
	struct pen_seq_part *part;  /* by blob */
	uint32_t ntokens;	    /* fields, the first ones */
	int place[PEN_SEQ_NFIELDS]; /* of each field, or -1 */
	uint64_t longest, longest_read;
	uint64_t room; /* bytes for the letters of one sample */
	bool turns;    /* some may be of the other strand */
};

extern const char *const pen__seq_rcs[],
	*const pen__seq_complements[], *const pen__seq_lasts[],
					       *const pen__seq_packs[];

#define PEN_SEQ__OFF(x) offsetof(struct pen_seqs, x)
/* Options that all have. */
#define PEN_SEQ_OPTS                                                           \
	PEN_TOKEN_OPTS(struct pen_seqs, token),                                \
		{ .name = "fields",                                            \
		  .type = PEN_OPT_STR,                                         \
		  .off = PEN_SEQ__OFF(fields),                                 \
		  .help = "further fields: id, length, quality (fastq), all; " \
			  "a label comes in any case" },                       \
		{ .name = "rc",                                                \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(rc),                                     \
		  .dflt = "none",                                              \
		  .choices = pen__seq_rcs,                                     \
		  .help = "reverse complement; random: of every other "        \
			  "sample, "                                           \
			  "drawn anew each epoch" },                           \
		{ .name = "complement",                                        \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(complement),                             \
		  .dflt = "auto",                                              \
		  .choices = pen__seq_complements,                             \
		  .help = "of A: T (dna) or U (rna); auto: U where a sample "  \
			  "has U and no T" },                                  \
		{ .name = "gzip_limit",                                        \
		  .type = PEN_OPT_SIZE,                                        \
		  .off = PEN_SEQ__OFF(gzip_limit),                             \
		  .dflt = "1GiB",                                              \
		  .help = "gzip files that inflate to more are refused; "      \
			  "bgzip "                                             \
			  "has no limit" },                                    \
	{                                                                      \
		.name = "compress", .type = PEN_OPT_ENUM,                      \
		.off = PEN_SEQ__OFF(compress), .dflt = "none",                 \
		.choices = pen__seq_packs, .help = "writing: none or bgzip"    \
	}
/* Options of those whose records can be cut up. */
#define PEN_SEQ_WINDOW_OPTS                                                    \
	{ .name = "window",                                                    \
	  .type = PEN_OPT_COUNT,                                               \
	  .off = PEN_SEQ__OFF(window),                                         \
	  .dflt = "0",                                                         \
	  .max = 1e15,                                                         \
	  .help = "letters of a sample, cut out of records; 0: a record is "   \
		  "one" },                                                     \
		{ .name = "step",                                              \
		  .type = PEN_OPT_COUNT,                                       \
		  .off = PEN_SEQ__OFF(step),                                   \
		  .dflt = "0",                                                 \
		  .max = 1e15,                                                 \
		  .help = "letters from one window to the next; 0: window" },  \
		{ .name = "last",                                              \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(last),                                   \
		  .dflt = "keep",                                              \
		  .choices = pen__seq_lasts,                                   \
		  .help = "a record's last, shorter window: keep it, drop "    \
			  "it, "                                               \
			  "or move it back to be whole" },                     \
		{ .name = "bed",                                               \
		  .type = PEN_OPT_STR,                                         \
		  .off = PEN_SEQ__OFF(bed_path),                               \
		  .help = "file of intervals: samples are these, by name; a "  \
			  "number in column 4 is the label, - in column 6 "    \
			  "the "                                               \
			  "other strand" },                                    \
	{                                                                      \
		.name = "shift", .type = PEN_OPT_COUNT,                        \
		.off = PEN_SEQ__OFF(shift), .dflt = "0", .max = 1e9,           \
		.help = "windows and intervals: moved at random by up to so "  \
			"many letters either way, each epoch anew"             \
	}

int pen__seq_open(struct pen_format *, const struct pen_seq_ops *,
		  struct pen_err *);
void pen__seq_close(struct pen_format *);
int pen__seq_index(const struct pen_format *, struct pen_peek *,
		   struct pen_found *, struct pen_err *);
int pen__seq_bind(struct pen_format *, const struct pen_index *,
		  struct pen_err *);
void pen__seq_shape(const struct pen_format *, uint32_t object, uint64_t k,
		    uint32_t field, int64_t *shape);
void pen__seq_locate(const struct pen_format *, uint32_t object, uint64_t k,
		     struct pen_unit *);
int pen__seq_unpack(const struct pen_format *, const struct pen_unit *,
		    struct pen_span raw, void *out, struct pen_scratch *,
		    struct pen_err *);
int pen__seq_emit(const struct pen_format *, const struct pen_row *,
		  struct pen_err *);
bool pen__seq_value(const struct pen_format *, uint32_t object, uint64_t k,
		    uint32_t field, double *out);
uint64_t pen__seq_nlabels(const struct pen_format *, uint32_t field);
int pen__seq_label(const struct pen_format *, uint32_t field, uint64_t code,
		   char *buf, size_t cap);
void pen__seq_warn(const struct pen_format *, void *arg,
		   void (*see)(void *arg, const struct pen_err *));
void pen__seq_describe(const struct pen_format *, struct pen_describe *);

/* ---- from a sample to its bytes ---- */

struct pen_seq_where {
	uint64_t record, from, to; /* letters of it */
	uint64_t letters;	   /* it has */
	uint64_t interval;
	bool minus;
};
struct pen_seq_range { /* of the text */
	uint64_t from, to;
};
struct pen_seq_where pen__seq_where(const struct pen_seqs *,
				    const struct pen_seq_part *, uint64_t k);
/* All bytes that sample k may need. */
struct pen_seq_range pen__seq_range(const struct pen_seqs *,
				    const struct pen_seq_part *, uint64_t k);
/* The bytes of letters [from, to) of a record, how they lie, and how many
 * letters in them come before the first. */
struct pen_seq_run {
	struct pen_seq_range in;
	struct pen_seq_layout layout; /* bases 0: irregular */
	uint64_t skip;		      /* irregular: letters; else: in a line */
};
struct pen_seq_run pen__seq_letters(const struct pen_seq_part *,
				    uint64_t record, uint64_t from,
				    uint64_t to);
struct pen_seq_run pen__seq_quality(const struct pen_seq_part *,
				    uint64_t record, uint64_t from,
				    uint64_t to);

/* ---- writing ---- */

int pen__lines_write(const struct pen_format *, const struct pen_table *,
		     struct pen_out *, struct pen_err *);
int pen__fasta_write(const struct pen_format *, const struct pen_table *,
		     struct pen_out *, struct pen_err *);
int pen__fastq_write(const struct pen_format *, const struct pen_table *,
		     struct pen_out *, struct pen_err *);

#endif
