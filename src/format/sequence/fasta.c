/*
 * FASTA: headings after a '>', and lines of letters below. A record is a
 * sample, or windows over records are, or the intervals of a BED file. Lines
 * of any length, CRLF, empty records, blank lines, small letters and IUPAC
 * codes are all right; the id is the first word of the heading, as htslib has
 * it. What is beside a file (.fai, .gzi) is used when it is right.
 *
 * Refuses text before the first heading, and bytes that are no text.
 */
#include "base/quote.h"
#include "format/sequence/fasta.h"

enum { LINE, HEADING, SEQUENCE };

static const char *const fais[] = { "auto", "always", "never", NULL };

#define OFF(x) offsetof(struct pen_seqs, x)
static const struct pen_opt fasta_opts[] = {
	PEN_SEQ_OPTS,
	PEN_SEQ_WINDOW_OPTS,
	{ .name = "fai",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(fai),
	  .dflt = "auto",
	  .choices = fais,
	  .help = "use FILE.fai, when it is right, instead of reading the "
		  "whole file once; auto: of large files" },
	{ .name = "line",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(line_width),
	  .dflt = "60",
	  .max = 1e15,
	  .help = "writing: letters of a line; 0: all" },
	{ .name = "index",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(index),
	  .dflt = "false",
	  .help = "writing: FILE.fai beside it, and FILE.gzi" },
	{ .name = NULL },
};

static bool is_open(const struct pen_seq_scan *s)
{
	return s->col[PEN_SEQ_START].n > s->col[PEN_SEQ_LETTERS].n;
}

static int record_end(struct pen_seq_scan *s)
{
	uint64_t layout;
	int rc;

	if (!is_open(s))
		return 0;
	rc = pen__seq_lines_end(s, &s->letters, &layout);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_HEAD, s->letters.first - s->start);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_LETTERS, s->letters.n);
	return rc ? rc : pen__seq_put(s, PEN_SEQ_LAYOUT, layout);
}

static int record_begin(struct pen_seq_scan *s)
{
	int rc = record_end(s);

	s->start = s->at;
	s->id = s->word = 0;
	s->id_at = 1;
	if (!rc && s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->names.n);
	return rc ? rc : pen__seq_put(s, PEN_SEQ_START, s->start);
}

/* Before the first heading only blank lines may be. */
static int before(struct pen_seq_scan *s, const uint8_t *p, size_t n)
{
	const uint8_t c = *p, *nl = memchr(p, '\n', n);

	if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
		s->line += c == '\n';
		s->at++;
		return 0;
	}
	return pen__seq_fail(s, "a FASTA file begins with '>', not with %s%s",
			     pen__quoted(p, nl ? (size_t)(nl - p) : n).s,
			     c == '@' ? ": is it fastq?" : "");
}

static int fasta_piece(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t *p = in.p, *e = in.p + in.n, *nl;
	size_t used;
	bool ended;
	int rc = 0;

	while (!rc && p < e) {
		const size_t left = (size_t)(e - p);

		used = 1;
		if (s->mode == LINE && *p == '>') {
			rc = record_begin(s);
			s->mode = HEADING;
			s->at++;
		} else if (s->mode == LINE && !is_open(s)) {
			rc = before(s, p, left);
		} else if (s->mode == HEADING) {
			nl = memchr(p, '\n', left);
			used = nl ? (size_t)(nl - p) : left;
			rc = pen__seq_heading(s, (struct pen_span){ p, used });
			used += nl != NULL;
			s->at += used;
			s->line += nl != NULL;
			s->mode = nl ? LINE : HEADING;
			if (nl && !rc)
				rc = pen__seq_heading_end(s);
		} else {
			rc = pen__seq_lines_take(s, &s->letters,
						 (struct pen_span){ p, left },
						 &used, &ended);
			s->mode = ended ? LINE : SEQUENCE;
		}
		p += used;
	}
	return rc;
}

static int fasta_end(struct pen_seq_scan *s)
{
	int rc = 0;

	if (s->mode == HEADING)
		rc = pen__seq_heading_end(s);
	return rc ? rc : record_end(s);
}

static const struct pen_seq_ops fasta_ops = {
	.piece = fasta_piece,
	.end = fasta_end,
	.aside = pen__fasta_fai,
};

static int fasta_open(struct pen_format *f, struct pen_err *err)
{
	return pen__seq_open(f, &fasta_ops, err);
}

static const char *const fasta_suffixes[] = { ".fa",	 ".fasta",    ".fna",
					      ".ffn",	 ".faa",      ".frn",
					      ".fa.gz",	 ".fasta.gz", ".fna.gz",
					      ".ffn.gz", ".faa.gz",   NULL };

const struct pen_format_ops pen__format_fasta = {
	.name = "fasta",
	.help = "FASTA, plain, gzip or bgzip: records, windows, intervals",
	.suffixes = fasta_suffixes,
	.opts = fasta_opts,
	.priv_size = sizeof(struct pen_seqs),
	.open = fasta_open,
	.close = pen__seq_close,
	.index = pen__seq_index,
	.bind = pen__seq_bind,
	.shape = pen__seq_shape,
	.locate = pen__seq_locate,
	.unpack = pen__seq_unpack,
	.emit = pen__seq_emit,
	.value = pen__seq_value,
	.nlabels = pen__seq_nlabels,
	.label = pen__seq_label,
	.describe = pen__seq_describe,
	.warn = pen__seq_warn,
	.write = pen__fasta_write,
};
