/*
 * Files of any type, one sample each: its bytes. Decoders interpret them, so
 * images are read this way, too.
 */
#include "format/whole_files.h"

int pen__files_index(const struct pen_format *f, struct pen_peek *pk,
		     struct pen_found *found, struct pen_err *err)
{
	found->nsamples = 1;
	return f->see ? f->see(f, "x", 0, pk, found, err) : 0;
}

int pen__files_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	uint64_t most = 0, least = UINT64_MAX;

	if (!ix->nsamples)
		return pen__fail(err, P_NOT_FOUND, f->ops->name,
				 "no files found");
	for (uint64_t i = 0; i < ix->nobjects; i++) {
		const uint64_t n = ix->size_of(ix, i);

		if (ix->first && ix->first[i] == ix->first[i + 1])
			continue; /* excluded by on_error=skip */
		most = n > most ? n : most;
		least = n < least ? n : least;
	}
	f->ix = ix;
	f->field[0] = (struct pen_field){
		.name = "x",
		.dtype = PEN_U8,
		.ndim = 1,
		.shape = { most == least ? (int64_t)most : -1 },
		.max_bytes = most,
	};
	f->nfields = f->units_per_sample = 1;
	f->all_plain = true;
	f->uniform = most == least;
	return 0;
}

void pen__files_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	(void)k;
	(void)field;
	shape[0] = (int64_t)f->ix->size_of(f->ix, object);
}

void pen__files_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	(void)k;
	*u = (struct pen_unit){ .len = f->ix->size_of(f->ix, object),
				.object = object,
				.flags = PEN_UNIT_PLAIN };
}

const struct pen_format_ops pen__format_files = {
	.name = "files",
	.help = "files of any type, one sample each: raw bytes, or decoded "
		"with decode.x=",
	.takes_all = true,
	.index = pen__files_index,
	.bind = pen__files_bind,
	.shape = pen__files_shape,
	.locate = pen__files_locate,
};
