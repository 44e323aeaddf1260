/* The bytes of csv that mean something, found many at a time. */
#ifndef PEN_FORMAT_TABLE_CSV_MARKS_H
#define PEN_FORMAT_TABLE_CSV_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEN_CSV_BLOCK 4096 /* bytes looked at in one go, at most */
#define PEN_CSV_SPARE 64   /* readable bytes that follow them */

/*
 * Where delimiters, line ends and points are in the n <= PEN_CSV_BLOCK bytes
 * at p, which PEN_CSV_SPARE others follow; at has room for n. Returns how
 * many; quoted: there is a quote as well.
 */
size_t pen__csv_marks(const uint8_t *p, size_t n, uint8_t delim, uint16_t *at,
		      bool *quoted);

/* A line's end, and the delimiters since the one before, or the beginning. */
struct pen_csv_line {
	uint32_t at, delims;
};

/*
 * The line ends in PEN_CSV_BLOCK bytes; out has room for as many. Returns how
 * many; rest: delimiters after the last; plain: there is no quote and no NUL.
 */
size_t pen__csv_lines(const uint8_t *p, uint8_t delim, struct pen_csv_line *out,
		      uint32_t *rest, bool *plain);

#endif
