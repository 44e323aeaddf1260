/* Finds the significant bytes of csv, many at a time. */
#ifndef PEN_FORMAT_TABLE_CSV_MARKS_H
#define PEN_FORMAT_TABLE_CSV_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEN_CSV_BLOCK 4096 /* most bytes per call */
#define PEN_CSV_SPARE 64   /* readable bytes required after them */

/*
 * Positions of delimiters, newlines and decimal points in the n <=
 * PEN_CSV_BLOCK bytes at p, which PEN_CSV_SPARE readable bytes follow; at has
 * room for n. Returns their number; quoted: there is also a quote.
 */
size_t pen__csv_marks(const uint8_t *p, size_t n, uint8_t delim, uint16_t *at,
		      bool *quoted);

/* A newline, and the number of delimiters since the previous one or the start.
 */
struct pen_csv_line {
	uint32_t at, delims;
};

/*
 * The newlines in PEN_CSV_BLOCK bytes; out has room for that many. Returns
 * their number; rest: delimiters after the last; plain: there is no quote and
 * no NUL.
 */
size_t pen__csv_lines(const uint8_t *p, uint8_t delim, struct pen_csv_line *out,
		      uint32_t *rest, bool *plain);

#endif
