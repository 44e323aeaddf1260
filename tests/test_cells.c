/*
 * Rows of matrices whose chunks are groups of rows: their location, built in
 * memory, with blobs that contradict themselves.
 */
#include "format/cells/cells.h"
#include "test.h"

#define ROWS 23u
#define GROUP 5u
#define CHUNKS 5u

/* Rows of 0 to 6 values; value i is i. */
struct sample {
	struct pen_buf blob;
	struct pen_cells_matrix m;
	uint32_t starts[ROWS + 1];
	uint32_t numbers[256];
	uint64_t offsets[CHUNKS];
	uint32_t sizes[CHUNKS];
};

static uint64_t group_end(const struct sample *s, uint32_t g)
{
	return s->m.sparse ? s->starts[g < CHUNKS ? g * GROUP : ROWS]
			   : (g < CHUNKS ? g * GROUP : ROWS) * s->m.ncols;
}

static void make(struct sample *s, bool sparse, bool packed)
{
	const struct pen_filters filters = { .n = packed, .f[0].id = 1 };
	struct pen_chunks cs = { 0 };
	struct pen_chunked_put a = { .layout = PEN_CHUNKED_GROUPED,
				     .dtype = PEN_U32,
				     .ndim = 1,
				     .group_rows = GROUP,
				     .filters = &filters,
				     .chunks = &cs };
	struct pen_bytes b;

	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < 256; i++)
		s->numbers[i] = i;
	for (uint32_t i = 0; i < ROWS; i++)
		s->starts[i + 1] =
			s->starts[i] + (i / GROUP == 2 ? 0 : i * 5 % 7);
	s->m = (struct pen_cells_matrix){ .nrows = ROWS,
					  .ncols = 9,
					  .most = sparse ? 6 : 9,
					  .sparse = sparse,
					  .indptr = (uint8_t *)s->starts,
					  .width = 4,
					  .extent = 9 };
	s->m.nnz = sparse ? s->starts[ROWS] : ROWS * 9;
	for (uint32_t g = 0; g < CHUNKS; g++) {
		const uint64_t n = group_end(s, g + 1) - group_end(s, g);

		s->offsets[g] = 1000 + group_end(s, g) * 4;
		s->sizes[g] = 100 + g;
		if (n * 4 > a.chunk_bytes)
			a.chunk_bytes = n * 4;
		CHECK_EQ(pen__chunks_add(
				 &cs,
				 &(struct pen_chunk){ .at = s->offsets[g],
						      .size = s->sizes[g] }),
			 0);
	}
	a.dim[0] = s->m.nnz;
	pen__chunked_put(&s->blob, &a);
	pen__chunks_fini(&cs);
	b = pen__bytes(s->blob.p, s->blob.n);
	CHECK(pen__chunked_take(&b, &s->m.data));
	CHECK_EQ(pen__bytes_left(&b), 0);
	CHECK_EQ(s->m.data.layout, PEN_CHUNKED_GROUPED);
	CHECK_EQ(pen__cells_array_units(&s->m, &s->m.data), 1);
}

static void check_row(const struct sample *s, uint32_t row, bool packed)
{
	const uint32_t g = row / GROUP;
	struct pen_unit u = { .object = PEN_NO_OBJECT };
	struct pen_span data;
	struct pen_cells_run run = { .m = &s->m,
				     .a = &s->m.data,
				     .unit = &u,
				     .data = &data,
				     .row = row };
	uint64_t from, to, first;
	const uint8_t *p;

	pen__cells_span(&s->m, row, &from, &to);
	CHECK_EQ(to - from,
		 s->m.sparse ? s->starts[row + 1] - s->starts[row] : 9);
	pen__cells_array_locate(&s->m, &s->m.data, row, &u);
	CHECK_EQ(u.object, from < to ? 0 : PEN_NO_OBJECT);
	if (from == to)
		return;
	first = s->m.sparse ? from : row * 9;
	if (packed) {
		CHECK_EQ(u.offset, s->offsets[g]);
		CHECK_EQ(u.len, s->sizes[g]);
		CHECK_EQ(u.id, g);
		CHECK_EQ(u.size, (group_end(s, g + 1) - group_end(s, g)) * 4);
		CHECK(u.flags == (PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED));
		data = (struct pen_span){
			(const uint8_t *)&s->numbers[group_end(s, g)], u.size
		};
	} else {
		CHECK_EQ(u.offset, 1000 + first * 4);
		CHECK_EQ(u.len, (to - from) * 4);
		data = (struct pen_span){ (const uint8_t *)&s->numbers[first],
					  u.len };
	}
	run.at = from;
	run.end = to;
	CHECK_EQ(pen__cells_run_next(&run, &p), to - from);
	CHECK(p == (const uint8_t *)&s->numbers[first]);
	CHECK_EQ(run.at, run.end);
	run.unit = &u;
	run.data = &data;
	run.at = from;
	data.n--;
	CHECK_EQ(pen__cells_run_next(&run, &p), 0);
}

static void test_grouped(void)
{
	struct sample s;

	for (int i = 0; i < 4; i++) {
		make(&s, i & 1, i & 2);
		for (uint32_t row = 0; row < ROWS; row++)
			check_row(&s, row, i & 2);
		pen__buf_fini(&s.blob);
	}
}

/* Whatever the offsets are, no row is longer than declared or elsewhere. */
static void test_damaged(void)
{
	static const uint32_t wrong[] = { 0,  1,  30,	    61,
					  62, 63, 1u << 30, UINT32_MAX };
	struct sample s;
	uint64_t from, to;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		for (uint32_t at = 0; at <= ROWS; at++) {
			make(&s, true, true);
			s.starts[at] = wrong[i];
			for (uint32_t row = 0; row < ROWS; row++) {
				struct pen_unit u = { .object = PEN_NO_OBJECT };

				pen__cells_span(&s.m, row, &from, &to);
				CHECK(to - from <= s.m.most && to <= s.m.nnz);
				pen__cells_array_locate(&s.m, &s.m.data, row,
							&u);
				CHECK(u.object ||
				      u.size <= s.m.data.chunk_bytes);
			}
			pen__buf_fini(&s.blob);
		}
}

int main(void)
{
	test_grouped();
	test_damaged();
	return test_end();
}
