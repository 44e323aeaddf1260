/* Shared by reader, indexing, number parsing and writer of csv. */
#ifndef PEN_FORMAT_TABLE_CSV_H
#define PEN_FORMAT_TABLE_CSV_H

#include <locale.h>

#include "format/format.h"

#define PEN_CSV_MAX_ROW ((uint64_t)1 << 30)

enum { PEN_CSV_HEADER_AUTO, PEN_CSV_HEADER_YES, PEN_CSV_HEADER_NO };
enum { PEN_CSV_MISSING_ERROR, PEN_CSV_MISSING_NAN };

/* The rows of one object. */
struct pen_csv_part {
	uint64_t n, first, step, end; /* rows are step bytes apart, */
	const uint8_t *off;	      /* or start here: n u64 */
	uint64_t run;		      /* rows fetched together */
	uint32_t ncolumns, nchosen;
	uint32_t *place; /* per column: position in the row, or UINT32_MAX */
};

struct pen_csv {
	/* options */
	int header, missing;
	bool ragged;
	char *delimiter, *dtype, *columns;
	/* from open() on */
	enum pen_dtype type;
	char delim;
	locale_t c; /* C locale: numbers always have a decimal point */
	/* from bind() on */
	struct pen_csv_part *part; /* by blob */
};

/* One value as text: [p, e), between two delimiters. */
struct pen_csv_text {
	const uint8_t *p, *e;
};

/*
 * The next value of a row, which ends at a newline or at the end of the bytes;
 * false at the end of the row. Start with at->p at the first byte and *more
 * true.
 */
bool pen__csv_next(struct pen_csv_text *at, char delim, bool *more,
		   struct pen_csv_text *out);

enum pen_csv_value { PEN_CSV_NUMBER, PEN_CSV_MISSING, PEN_CSV_BAD };
/* Writes one element of type t to dst. */
enum pen_csv_value pen__csv_value(struct pen_csv_text, enum pen_dtype t,
				  locale_t, void *dst);

/* Why parsing of a row stopped. */
struct pen_csv_stop {
	uint32_t column;
	struct pen_csv_text text;
	enum pen_csv_value kind; /* PEN_CSV_NUMBER: wrong number of values */
};
/* Writes all values of a row to dst; false: see stop. */
bool pen__csv_row(const struct pen_csv *, const struct pen_csv_part *,
		  struct pen_csv_text row, void *dst, struct pen_csv_stop *);

/* The shortest text that reads back as this element, NUL-terminated. */
unsigned pen__csv_print(const void *, enum pen_dtype, char out[40]);

int pen__csv_index(const struct pen_format *, struct pen_peek *,
		   struct pen_found *, struct pen_err *);
int pen__csv_write(const struct pen_format *, const struct pen_table *,
		   struct pen_out *, struct pen_err *);

extern const uint64_t pen__tens[20]; /* powers of ten */

#endif
