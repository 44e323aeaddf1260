/*
 * FASTA: a header line that starts with '>', then lines of letters. A sample is
 * a record, a window of a record, or an interval of a BED file. Lines of any
 * length, CRLF, empty records, blank lines, lowercase letters and IUPAC codes
 * are accepted; the id is the first word of the header, as in htslib. Index
 * files (.fai, .gzi) are used when they are valid.
 *
 * Refuses text before the first header and bytes that are not text.
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
	  .help = "use FILE.fai, if valid, instead of scanning the file; auto: "
		  "for large files" },
	{ .name = "line",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(line_width),
	  .dflt = "60",
	  .max = 1e15,
	  .help = "when writing, letters per line (0: one line per sequence)" },
	{ .name = "index",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(index),
	  .dflt = "false",
	  .help = "when writing, also write FILE.fai, and FILE.gzi with "
		  "bgzip" },
	{ .name = NULL },
};

static bool is_open(const struct pen_seq_scan *s)
{
	return s->col[PEN_SEQ_START].n > s->col[PEN_SEQ_LETTERS].n;
}

static int record_end(struct pen_seq_scan *s)
{
	return is_open(s) ? pen__seq_letters_end(s) : 0;
}

/* Only blank lines may precede the first header. */
static int before(struct pen_seq_scan *s, const uint8_t *p, size_t n)
{
	const uint8_t c = *p, *nl = memchr(p, '\n', n);

	if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
		s->line += c == '\n';
		s->at++;
		return 0;
	}
	return pen__seq_fail(s, P_NOT_THIS_FORMAT,
			     "a FASTA file must start with '>', not with %s%s",
			     pen__quoted(p, nl ? (size_t)(nl - p) : n).s,
			     c == '@' ? "; if it is FASTQ, set format=fastq"
				      : "");
}

static int fasta_piece(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t *p = in.p, *e = in.p + in.n;
	size_t used;
	bool ended;
	int rc = 0;

	while (!rc && p < e) {
		const size_t left = (size_t)(e - p);

		used = 1;
		if (s->mode == LINE && *p == '>') {
			rc = record_end(s);
			if (!rc)
				rc = pen__seq_record_begin(s);
			s->mode = HEADING;
		} else if (s->mode == LINE && !is_open(s)) {
			rc = before(s, p, left);
		} else if (s->mode == HEADING) {
			rc = pen__seq_heading(s, (struct pen_span){ p, left },
					      &used, &ended);
			s->mode = ended ? LINE : HEADING;
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
	.help = "FASTA, plain, gzip or bgzip: records, windows or intervals",
	.suffixes = fasta_suffixes,
	.opts = fasta_opts,
	.open = fasta_open,
	.write = pen__fasta_write,
	PEN_SEQ_FORMAT,
};
