/* Queries about a data set. */
#include <stdio.h>

#include "base/mem.h"
#include "engine/dataset.h"

PEN_API uint64_t pen_dataset_nsamples(const struct pen_dataset *ds)
{
	return ds->ix.pub.nsamples;
}

PEN_API uint64_t pen_dataset_nobjects(const struct pen_dataset *ds)
{
	return ds->objs.nobj;
}

PEN_API uint64_t pen_dataset_nbytes(const struct pen_dataset *ds)
{
	return ds->objs.total_bytes;
}

PEN_API const char *pen_dataset_format(const struct pen_dataset *ds)
{
	return ds->format->ops->name;
}

PEN_API const char *pen_dataset_store(const struct pen_dataset *ds)
{
	return ds->store->ops->name;
}

PEN_API void pen_dataset_object_name(const struct pen_dataset *ds,
				     uint64_t sample, char *buf, size_t cap)
{
	uint32_t object;
	uint64_t k;

	if (sample >= ds->ix.pub.nsamples) {
		snprintf(buf, cap, "sample %llu", (unsigned long long)sample);
		return;
	}
	pen__index_find(&ds->ix.pub, sample, &object, &k);
	pen__object_path(&ds->objs, object, buf, cap);
}

PEN_API const struct pen_spec *pen_dataset_spec(const struct pen_dataset *ds)
{
	return ds->spec;
}

PEN_API void pen_dataset_get_info(const struct pen_dataset *ds,
				  struct pen_dataset_info *out, size_t size)
{
	const struct pen_store *st = ds->store;
	const struct pen_dataset_info i = {
		.store_reason = ds->why_store,
		.source = (ds->spec->tier && st->under ? st->under : st)
				  ->ops->name,
		.cached = ds->resident,
		.per_object = ds->ix.pub.per_object,
		.nbad = ds->ix.nbad,
		.open_ns = ds->open_ns,
		.index_cached = ds->ix.from_cache,
	};

	pen__give(out, size, &i, sizeof(i));
}

PEN_API double pen_dataset_cached(const struct pen_dataset *ds)
{
	return pen__store_resident(&ds->objs);
}

PEN_API int pen_dataset_object(const struct pen_dataset *ds, uint64_t i,
			       char *buf, size_t cap, uint64_t *size)
{
	if (i >= ds->objs.nobj ||
	    !pen__object_path(&ds->objs, (uint32_t)i, buf, cap))
		return PEN_ENOTFOUND;
	if (size)
		*size = ds->objs.obj[i].size;
	return 0;
}

PEN_API int pen_dataset_bad(const struct pen_dataset *ds, uint64_t i,
			    uint64_t *object, struct pen_err *out)
{
	if (i >= ds->ix.nbad)
		return PEN_ENOTFOUND;
	*object = ds->ix.bad[i].object;
	if (out)
		*out = ds->ix.bad[i].err;
	return 0;
}

static void no_fact(void *arg, const char *name, const char *value)
{
	(void)arg;
	(void)name;
	(void)value;
}

static void no_advice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* Describes the first few codes of the label that the engine adds. */
static void say_labels(const struct pen_dataset *ds, struct pen_describe *d)
{
	const uint32_t field = ds->format->nfields;
	const uint64_t all = pen_dataset_nlabels(ds, field);
	char name[80], text[200] = "", label[41];
	uint64_t i;
	size_t n = 0;

	for (i = 0; i < all && n < sizeof(text) - 64; i++) {
		pen_dataset_label(ds, field, i, label, sizeof(label));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu %s",
				      i ? ", " : "", (unsigned long long)i,
				      label);
	}
	if (!all)
		return;
	snprintf(name, sizeof(name), "codes of %s", ds->label.field.name);
	if (i < all)
		snprintf(text + n, sizeof(text) - n, ", ...");
	d->fact(d->arg, name, text);
}

PEN_API void pen_dataset_describe(const struct pen_dataset *ds, void *arg,
				  void (*fact)(void *arg, const char *name,
					       const char *value),
				  void (*advice)(void *arg, const char *text))
{
	struct pen_describe d = { arg, fact ? fact : no_fact,
				  advice ? advice : no_advice };

	if (ds->format->ops->describe)
		ds->format->ops->describe(ds->format, &d);
	say_labels(ds, &d);
}

PEN_API void pen_dataset_warnings(const struct pen_dataset *ds, void *arg,
				  void (*see)(void *arg,
					      const struct pen_err *))
{
	if (ds->format->ops->warn)
		ds->format->ops->warn(ds->format, arg, see);
}
