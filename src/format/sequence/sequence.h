/*
 * Shared by the sequence formats (lines, fasta, fastq): finding records in text
 * that may be compressed, storing their positions in a few bytes each, cutting
 * them into samples, and passing letters to the tokeniser.
 *
 * "Text" is the content of an object, decompressed if it is gzip or bgzip; all
 * record offsets refer to the text. A sample is always one range of the text.
 */
#ifndef PEN_FORMAT_SEQUENCE_SEQUENCE_H
#define PEN_FORMAT_SEQUENCE_SEQUENCE_H

#include <locale.h>

#include "format/ahead.h"
#include "format/window.h"
#include "token/token.h"

/* ---- columns: compact arrays of integers ---- */

struct pen_column {
	const uint8_t *p; /* n numbers of `width` bytes, relative to a base: */
	const uint8_t *bases; /* a u64 for every 64 numbers; or NULL: */
	uint64_t base, step;  /* one base for all; width 0: base + k * step */
	uint64_t n;
	unsigned width;
};

/* A growing list of numbers. */
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
/* Index of the last number <= v, in a column that never decreases and whose
 * first number is <= v. */
uint64_t pen__column_find(const struct pen_column *, uint64_t v);

static inline uint64_t pen__column_at(const struct pen_column *c, uint64_t k)
{
	uint64_t v = 0, base = c->base;

	if (!c->width)
		return base + k * c->step;
	if (c->bases)
		memcpy(&base, c->bases + (k >> 6) * 8, 8);
	switch (c->width) { /* little-endian only */
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

/* ---- text of an object ---- */

enum pen_seq_kind { PEN_SEQ_PLAIN, PEN_SEQ_GZIP, PEN_SEQ_BGZF };

struct pen_seq_text {
	struct pen_peek *pk;
	struct pen_err *err;
	uint64_t limit; /* largest size of decompressed gzip */
	enum pen_seq_kind kind;
	struct pen_window win;
	struct pen_ahead *ahead; /* for large uncompressed text */
	uint64_t end;		 /* end of the blocks in the object */
	uint64_t at;		 /* offset of the next piece in the object */
	uint64_t text;		 /* and in the text */
	uint8_t *out;		 /* decompressed data */
	size_t cap;
	struct pen_scratch scratch;
	struct pen_list raw, blocks; /* bgzip: offsets of blocks in the object
					and in the text, plus the end */
};
int pen__seq_text_open(struct pen_seq_text *, struct pen_peek *, uint64_t limit,
		       struct pen_err *err);
void pen__seq_text_close(struct pen_seq_text *);
/* Returns the next piece; PEN_END after the last. */
int pen__seq_text_next(struct pen_seq_text *, struct pen_span *out);
/* bgzip: finds all blocks without decompressing them, from FILE.gzi if it is
 * valid, otherwise by walking from block to block. */
int pen__seq_text_blocks(struct pen_seq_text *);
/* Reads n bytes at offset `at` of a text whose blocks are known. */
int pen__seq_text_read(struct pen_seq_text *, uint64_t at, void *to, size_t n);

/* Size of the block at p; 0: not a block, or n bytes are too few to tell
 * (*more). */
size_t pen__bgzf_block(const uint8_t *p, size_t n, bool *more);
#define PEN_BGZF_MOST 65536u /* largest block, compressed or not */
#define PEN_BGZF_HEAD 18u    /* usual size of a block header */
/* Decompresses all blocks in `raw` to exactly n bytes: 0, PEN_EDATA,
 * PEN_ENOMEM. */
int pen__bgzf_unpack(struct pen_scratch *, struct pen_span raw, uint8_t *to,
		     size_t n);

/* ---- bytes ---- */

/* True if all bytes are zero. Zeros after the gzip data are not an error:
 * programs that write in blocks leave them, and gzip(1) ignores them. */
static inline bool pen__seq_zeros(const uint8_t *p, size_t n)
{
	return n && !*p && !memcmp(p, p + 1, n - 1);
}
/* Index of the first byte that is not printable ASCII (a blank is not), or
 * n. */
size_t pen__seq_odd(const uint8_t *p, size_t n);
/* The same, but also stops at commas and semicolons. */
size_t pen__seq_stop(const uint8_t *p, size_t n);
/* Writes the reverse complement to other memory; rna: A becomes U. Handles
 * IUPAC codes, preserves case, and leaves other bytes unchanged. */
void pen__seq_reverse(const uint8_t *from, uint8_t *to, size_t n, bool rna);
/* Copies letters without blanks and line ends, at most n after the first
 * `skip`; returns how many. */
size_t pen__seq_squeeze(struct pen_span from, uint8_t *to, uint64_t skip,
			size_t n);
/* True if there is a U and no T. */
bool pen__seq_is_rna(const uint8_t *p, size_t n);

/* ---- records ---- */

enum pen_seq_column {
	PEN_SEQ_START, /* first byte of a record, plus the end of the text */
	PEN_SEQ_HEAD,  /* bytes before the first letter */
	PEN_SEQ_LETTERS,
	PEN_SEQ_LAYOUT,	 /* layout of the lines of letters */
	PEN_SEQ_ID,	 /* length of the id */
	PEN_SEQ_ID_AT,	 /* its offset: in the record, or after the letters */
	PEN_SEQ_QUALITY, /* bytes from first letter to first quality value */
	PEN_SEQ_QLAYOUT, /* layout of the quality lines */
	PEN_SEQ_LABEL,	 /* a double's bits, or an integer ^ PEN_SEQ_SIGN */
	/* irregular records: which, and offsets of every 4096th letter */
	PEN_SEQ_ODD,
	PEN_SEQ_ODD_FIRST,
	PEN_SEQ_MARK,
	PEN_SEQ_WINDOWS, /* samples before each record, plus the total */
	PEN_SEQ_NAMES,	 /* offset of the record's name in the names */
	/* samples from intervals */
	PEN_SEQ_RECORD,
	PEN_SEQ_INTERVAL,
	/* bgzip blocks: offsets in the object and in the text, plus the ends */
	PEN_SEQ_RAW,
	PEN_SEQ_BLOCK,
	PEN_SEQ_NCOLUMNS
};

#define PEN_SEQ_SIGN ((uint64_t)1 << 63) /* preserves the order */

/* Lines of equal length: `bases` letters in `width` bytes, except the last.
 * Layout 0 is a single line, PEN_SEQ_IRREGULAR any other lines. */
#define PEN_SEQ_IRREGULAR 255u
#define PEN_SEQ_MARK_EVERY 4096u
struct pen_seq_layout {
	uint64_t bases, width;
};

/* Lines of letters or quality values while they are scanned. */
struct pen_seq_lines {
	uint64_t first;	       /* offset of the first letter */
	uint64_t n;	       /* letters in completed lines */
	uint64_t now;	       /* letters in the current line */
	uint64_t line;	       /* offset of the current line */
	uint64_t bases, width; /* of the first line */
	bool closed; /* a shorter line was seen; if regular, it is the last */
	bool irregular;
	uint8_t blank; /* fastq: a blank, legal only at the end of a line */
};

/* lines: the first second column that is not a number. */
struct pen_seq_odd {
	uint64_t line; /* from 1; 0: none */
	uint8_t n;     /* length of the text below */
	uint8_t text[31];
	bool others; /* some lines have a number, as far as checked */
};

struct pen_seqs;
struct pen_seq_scan {
	const struct pen_seqs *p;
	struct pen_peek *pk;
	struct pen_err *err;
	struct pen_seq_text text;
	struct pen_list col[PEN_SEQ_NCOLUMNS];
	struct pen_seq_layout layout[PEN_SEQ_IRREGULAR];
	unsigned nlayouts; /* including layout 0 */
	struct pen_buf names;
	bool unproven; /* from a .fai: not all lines were checked */
	/* current record */
	int mode;
	uint64_t at;   /* offset of the current byte in the text */
	uint64_t line; /* current line, from 1 */
	uint64_t start, id, id_at;
	/* header: 0 before the id, 1 in it, 2 after; lines: the separator
	 * before the second column, 0: no such column */
	int word;
	bool keep_names;
	struct pen_seq_lines letters, quality;
	bool cr;	    /* the last byte was a CR */
	uint8_t text64[64]; /* lines: the second column; others: the id */
	uint64_t gap;	    /* bytes before the second column */
	uint64_t blanks;    /* blanks at its end */
	struct pen_seq_odd odd;
	bool floats, no_labels;
};

/* Helpers for scanning, in sequence_index.c. They return 0 or an error that
 * names the current line and record. */
int pen__seq_fail(struct pen_seq_scan *, int kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The current or the last record: "record 7 ('chr7')". */
struct pen_seq_name {
	char s[144];
};
struct pen_seq_name pen__seq_record(const struct pen_seq_scan *);
int pen__seq_nomem(struct pen_seq_scan *);
void pen__seq_lines_begin(struct pen_seq_lines *, uint64_t at);
/* Takes letters, blanks and line ends, up to the end of the line (*ended) or of
 * the input; *used: bytes taken. */
int pen__seq_lines_take(struct pen_seq_scan *, struct pen_seq_lines *,
			struct pen_span p, size_t *used, bool *ended);
/* Ends the lines of a record and returns their layout. */
int pen__seq_lines_end(struct pen_seq_scan *, struct pen_seq_lines *,
		       uint64_t *layout);
/* Number of this layout; PEN_SEQ_IRREGULAR: there are too many different
 * ones. */
unsigned pen__seq_layout(struct pen_seq_scan *, struct pen_seq_layout);
/* Given the next bytes of a line: false if a CR is not at its end. A file with
 * CR line ends would be one long line. */
bool pen__seq_one_line(struct pen_seq_scan *, const uint8_t *, size_t n);
/* fasta, fastq: starts a record at the current byte, '>' or '@'. */
int pen__seq_record_begin(struct pen_seq_scan *);
/* Takes bytes of a header line, whose first word is the id, up to the end of
 * the line (*ended) or of the input; *used: bytes taken. */
int pen__seq_heading(struct pen_seq_scan *, struct pen_span, size_t *used,
		     bool *ended);
int pen__seq_put(struct pen_seq_scan *, enum pen_seq_column, uint64_t v);
/* fasta, fastq: the header is complete and letters follow. */
int pen__seq_heading_end(struct pen_seq_scan *);
/* fasta, fastq: the letters are complete. */
int pen__seq_letters_end(struct pen_seq_scan *);
/* Adds a record that is completely known: the first columns, in order. */
int pen__seq_record_put(struct pen_seq_scan *,
			const uint64_t v[PEN_SEQ_ID_AT + 1]);

/* What each format implements: scanning a piece of text, and its end. */
struct pen_seq_ops {
	int (*piece)(struct pen_seq_scan *, struct pen_span);
	int (*end)(struct pen_seq_scan *);
	/* Takes the records from an index file, if it is valid; PEN_END: it is
	 * not. May be NULL. */
	int (*aside)(struct pen_seq_scan *);
	bool lines, quality; /* format has these */
};

/* ---- intervals ---- */

struct pen_seq_interval {
	uint64_t from, to;
	uint32_t name, name_len; /* offset and length in the file */
	uint32_t line;		 /* of the file, from 1 */
	bool minus;
	double label;
};
struct pen_seq_bed {
	struct pen_buf file;
	struct pen_seq_interval *v;
	uint64_t n, hash;
	uint32_t *slot; /* by name: first interval + 1 */
	uint32_t *next; /* next interval of the same name */
	uint64_t mask;
	bool labels; /* column 4 is always a number */
	bool whole;  /* and always an integer */
};
int pen__seq_bed_read(struct pen_seq_bed *, const char *path, struct pen_err *);
void pen__seq_bed_fini(struct pen_seq_bed *);
/* First interval with this name, or UINT32_MAX; the others follow by next[]. */
uint32_t pen__seq_bed_find(const struct pen_seq_bed *, const void *, size_t);

/* ---- a data set ---- */

/* The records of one object. */
struct pen_seq_part {
	enum pen_seq_kind kind;
	uint64_t nrecords, nsamples, text;
	bool unproven, floats, labels, ids;
	uint64_t shortest, longest; /* letters per sample */
	uint64_t longest_range, longest_id;
	struct pen_seq_odd odd;
	struct pen_column col[PEN_SEQ_NCOLUMNS];
	struct pen_seq_layout layout[PEN_SEQ_IRREGULAR + 1];
	struct pen_span names;
	uint64_t run;	/* samples fetched together */
	uint64_t group; /* bgzip: blocks per unit */
};

/* Reads what index() has written; hash: of the intervals at that time. False:
 * damaged. */
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

/* Fields besides the tokeniser's, in the order of delivery. */
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
	/* set by open() */
	const struct pen_seq_ops *ops;
	struct pen_tokens *tokens;
	struct pen_seq_bed bed;
	locale_t c; /* numbers have a decimal point in every locale */
	bool want[PEN_SEQ_NFIELDS]; /* requested */
	/* set by bind() */
	struct pen_seq_part *part; /* one per blob */
	uint32_t ntokens; /* fields of the tokeniser, which come first */
	int place[PEN_SEQ_NFIELDS]; /* number of each field, or -1 */
	uint64_t longest, longest_read;
	uint64_t room; /* buffer size for the letters of one sample */
	bool turns;    /* some samples may be on the other strand */
};

extern const char *const pen__seq_rcs[],
	*const pen__seq_complements[], *const pen__seq_lasts[],
					       *const pen__seq_packs[];

#define PEN_SEQ__OFF(x) offsetof(struct pen_seqs, x)
/* Options of all sequence formats. */
#define PEN_SEQ_OPTS                                                           \
	PEN_TOKEN_OPTS(struct pen_seqs, token),                                \
		{ .name = "fields",                                            \
		  .type = PEN_OPT_STR,                                         \
		  .off = PEN_SEQ__OFF(fields),                                 \
		  .help = "extra fields: id, length, quality (FASTQ) or all "  \
			  "(labels are always included)" },                    \
		{ .name = "rc",                                                \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(rc),                                     \
		  .dflt = "none",                                              \
		  .choices = pen__seq_rcs,                                     \
		  .help = "reverse complement; random: of half the samples, "  \
			  "redrawn every epoch" },                             \
		{ .name = "complement",                                        \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(complement),                             \
		  .dflt = "auto",                                              \
		  .choices = pen__seq_complements,                             \
		  .help = "complement of A: T (dna) or U (rna); auto: U if a " \
			  "sample has U but no T" },                           \
		{ .name = "gzip_limit",                                        \
		  .type = PEN_OPT_SIZE,                                        \
		  .off = PEN_SEQ__OFF(gzip_limit),                             \
		  .dflt = "1GiB",                                              \
		  .help = "largest decompressed size of a gzip file (bgzip "   \
			  "has no limit)" },                                   \
	{                                                                      \
		.name = "compress", .type = PEN_OPT_ENUM,                      \
		.off = PEN_SEQ__OFF(compress), .dflt = "none",                 \
		.choices = pen__seq_packs, .help = "compression when writing"  \
	}
/* Options of formats whose records can be cut. */
#define PEN_SEQ_WINDOW_OPTS                                                    \
	{ .name = "window",                                                    \
	  .type = PEN_OPT_COUNT,                                               \
	  .off = PEN_SEQ__OFF(window),                                         \
	  .dflt = "0",                                                         \
	  .max = 1e15,                                                         \
	  .help = "letters per sample, cut from the records (0: one sample "   \
		  "per record)" },                                             \
		{ .name = "step",                                              \
		  .type = PEN_OPT_COUNT,                                       \
		  .off = PEN_SEQ__OFF(step),                                   \
		  .dflt = "0",                                                 \
		  .max = 1e15,                                                 \
		  .help = "letters between window starts (0: same as "         \
			  "window)" },                                         \
		{ .name = "last",                                              \
		  .type = PEN_OPT_ENUM,                                        \
		  .off = PEN_SEQ__OFF(last),                                   \
		  .dflt = "keep",                                              \
		  .choices = pen__seq_lasts,                                   \
		  .help = "last, shorter window of a record: keep it, drop "   \
			  "it, or move it back to full size" },                \
		{ .name = "bed",                                               \
		  .type = PEN_OPT_STR,                                         \
		  .off = PEN_SEQ__OFF(bed_path),                               \
		  .help = "BED file of intervals to use as samples (column "   \
			  "4: label, if a number; column 6: strand)" },        \
	{                                                                      \
		.name = "shift", .type = PEN_OPT_COUNT,                        \
		.off = PEN_SEQ__OFF(shift), .dflt = "0", .max = 1e9,           \
		.help = "largest random shift of windows and intervals, in "   \
			"letters, redrawn every epoch"                         \
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

/* What the tables of the formats share. */
#define PEN_SEQ_FORMAT                                                         \
	.priv_size = sizeof(struct pen_seqs), .close = pen__seq_close,         \
	.index = pen__seq_index, .bind = pen__seq_bind,                        \
	.shape = pen__seq_shape, .locate = pen__seq_locate,                    \
	.unpack = pen__seq_unpack, .emit = pen__seq_emit,                      \
	.value = pen__seq_value, .nlabels = pen__seq_nlabels,                  \
	.label = pen__seq_label, .describe = pen__seq_describe,                \
	.warn = pen__seq_warn

/* ---- from a sample to its bytes ---- */

struct pen_seq_where {
	uint64_t record, from, to; /* range of letters in the record */
	uint64_t letters;	   /* letters in the record */
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
/* The bytes that hold letters [from, to) of a record, their layout, and how
 * many letters precede the first. */
struct pen_seq_run {
	struct pen_seq_range in;
	struct pen_seq_layout layout; /* bases 0: irregular */
	uint64_t skip; /* irregular: letters; otherwise: position in the line */
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
