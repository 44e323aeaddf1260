/* Shared by reader, indexing and writer of tfrecord. */
#ifndef PEN_FORMAT_RECORD_TFRECORD_H
#define PEN_FORMAT_RECORD_TFRECORD_H

#include "format/record/example.h"

/* A record: u64 length, u32 crc of it, the payload, u32 crc of that. */
#define PEN_TFR_HEAD 12u
#define PEN_TFR_TAIL 4u
#define PEN_TFR_FRAME (PEN_TFR_HEAD + PEN_TFR_TAIL)

/* The records of one object. */
struct pen_tfr_part {
	uint64_t n;
	uint64_t len;	    /* payload bytes, if equal for all */
	const uint8_t *off; /* otherwise n + 1 u64: start of each record */
};

/* A feature in the records of one object. */
struct pen_tfr_column {
	enum pen_feature_kind kind; /* NONE: no record has it */
	uint64_t count; /* elements, if equal for all; otherwise the maximum */
	const uint8_t *counts; /* n u32, or NULL */
};

struct pen_tfr {
	/* options */
	char *fields;
	bool crc, decode;
	int scan, style;
	bool index; /* writing: add a file with the offsets of records */
	/* from bind() on */
	struct pen_tfr_part *part;     /* by blob */
	struct pen_tfr_column *column; /* blob * nfields + field */
};

enum { PEN_TFR_SCAN_AUTO, PEN_TFR_SCAN_FULL };
enum { PEN_TFR_STYLE_FIELDS, PEN_TFR_STYLE_DLIO };

int pen__tfr_index(const struct pen_format *, struct pen_peek *,
		   struct pen_found *, struct pen_err *);
int pen__tfr_write(const struct pen_format *, const struct pen_table *,
		   struct pen_out *, struct pen_err *);

#endif
