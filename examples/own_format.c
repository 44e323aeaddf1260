/*
 * A format of one's own: vectors as the benchmarks of nearest-neighbour search
 * store them (.fvecs). A record is the number of dimensions, as int32, and that
 * many float32; all records of a file have the same number.
 *
 * In the tree this file would be src/format/record/fvecs.c, and
 * src/format/record/CMakeLists.txt would gain the line pen_format(fvecs). Here
 * it is built into a copy of the command, fvecs_penstock.
 */
#include <inttypes.h>

#include "format/format.h"

#define MOST_DIMENSIONS (1u << 20)

/* Reads the number of dimensions in the record at `at`; 0: it is not valid. */
static int read_dimensions(struct pen_peek *pk, uint64_t at, uint32_t *d,
			   struct pen_err *err)
{
	uint8_t raw[4];
	struct pen_bytes b = pen__bytes(raw, sizeof(raw));
	int rc = pk->read(pk, at, raw, sizeof(raw), err);

	*d = rc < 0 ? 0 : pen__take_u32(&b);
	return rc;
}

/* One object: how many samples it has, and as its blob the dimensions. Equal
 * files have equal blobs, which are stored once. */
static int fvecs_index(const struct pen_format *f, struct pen_peek *pk,
		       struct pen_found *found, struct pen_err *err)
{
	uint32_t first = 0, last = 0;
	uint64_t record;
	int rc;

	(void)f;
	if (!pk->size)
		return 0;
	if (pk->size < 4)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "%" PRIu64 " bytes are not a record",
				 pk->size);
	rc = read_dimensions(pk, 0, &first, err);
	if (rc < 0)
		return rc;
	/* the size of a file is known, what it says of itself is not to be
	 * trusted */
	if (!first || first > MOST_DIMENSIONS)
		return pen__fail(err, P_NOT_THIS_FORMAT, pk->name,
				 "the first record has %" PRIu32 " dimensions; "
				 "1 to %u are valid",
				 first, MOST_DIMENSIONS);
	record = 4 + 4 * (uint64_t)first;
	if (pk->size % record)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "%" PRIu64 " bytes are not a whole number of "
				 "records of %" PRIu64 " bytes",
				 pk->size, record);
	rc = read_dimensions(pk, pk->size - record, &last, err);
	if (rc < 0)
		return rc;
	if (last != first)
		return pen__fail(err, P_DAMAGED, pk->name,
				 "the first record has %" PRIu32
				 " dimensions, the last one %" PRIu32,
				 first, last);
	found->nsamples = pk->size / record;
	pen__buf_le(&found->blob, first, 4);
	return 0;
}

static uint32_t dimensions(const struct pen_index *ix, uint64_t object)
{
	const struct pen_span blob = ix->blob(ix, ix->blob_of(ix, object));
	struct pen_bytes b = pen__bytes(blob.p, blob.n);

	return pen__take_u32(&b);
}

/* All objects: they must agree, since a batch has one shape. */
static int fvecs_bind(struct pen_format *f, const struct pen_index *ix,
		      struct pen_err *err)
{
	uint32_t d = 0;

	for (uint64_t i = 0; i < ix->nobjects; i++) {
		const uint32_t has = dimensions(ix, i);

		if (has > MOST_DIMENSIONS)
			return pen__fail(err, P_BAD_INDEX, "fvecs",
					 "the index entry is damaged");
		if (has && d && has != d)
			return pen__fail(err, P_FILES_DISAGREE, "fvecs",
					 "one file has %" PRIu32
					 " dimensions, another %" PRIu32,
					 d, has);
		d = has ? has : d;
	}
	f->ix = ix;
	f->field[0] = (struct pen_field){ .name = "x",
					  .dtype = PEN_F32,
					  .ndim = 1,
					  .shape = { d },
					  .max_bytes = 4 * (uint64_t)d };
	f->nfields = f->units_per_sample = 1;
	f->all_plain = true; /* the bytes of a record are its row */
	return 0;
}

/* One sample: its bytes, behind the dimensions of its record. */
static void fvecs_locate(const struct pen_format *f, uint32_t object,
			 uint64_t k, struct pen_unit *u)
{
	const uint64_t row = f->field[0].max_bytes;

	*u = (struct pen_unit){ .offset = k * (row + 4) + 4,
				.len = row,
				.object = object,
				.flags = PEN_UNIT_PLAIN };
}

static const char *const suffixes[] = { ".fvecs", NULL };

const struct pen_format_ops pen__format_fvecs;
const struct pen_format_ops pen__format_fvecs = {
	.name = "fvecs",
	.help = "float32 vectors, each after its number of dimensions",
	.suffixes = suffixes,
	.index = fvecs_index,
	.bind = fvecs_bind,
	.locate = fvecs_locate,
};
