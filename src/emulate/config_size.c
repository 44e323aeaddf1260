/* What a configuration amounts to: bytes of samples, files and checkpoints. */
#include <math.h>
#include <string.h>

#include "emulate/config_int.h"
#include "emulate/layout.h"

enum pen_dtype pen__config_dtype(const char *name)
{
	enum pen_dtype t;

	if (pen__starts_with(name, "np."))
		name += 3;
	return pen__numpy_dtype(name, NULL, &t, NULL) ? PEN_NDTYPES : t;
}

uint64_t pen__config_sample_bytes(const struct pen_config *c)
{
	const enum pen_dtype t =
		pen__config_dtype(c->dataset.record_element_type);
	const uint64_t size = t == PEN_NDTYPES ? 1 : pen_dtype_size(t);
	const uint64_t side = (uint64_t)sqrt(c->dataset.record_length);
	uint64_t n = 1;

	if (!c->dataset.record_dims.n)
		return side * side * size;
	for (size_t i = 0; i < c->dataset.record_dims.n; i++)
		n *= (uint64_t)c->dataset.record_dims.v[i];
	return n * size;
}

double pen__config_data_bytes(const struct pen_config *c)
{
	const double files = (double)c->dataset.num_files_train +
			     (double)c->dataset.num_files_eval;
	double bytes = (double)pen__config_sample_bytes(c);
	double samples = (double)c->dataset.num_samples_per_file;

	if (!strcmp(c->dataset.format, "synthetic"))
		return 0;
	/* an image is one sample; noise at quality 75 shrinks to this */
	if (!strcmp(c->dataset.format, "jpeg"))
		bytes *= 0.57;
	if (!strcmp(c->dataset.format, "jpeg") ||
	    !strcmp(c->dataset.format, "png"))
		samples = 1;
	if (!strcmp(c->dataset.format, "csv"))
		bytes *= 3.57; /* a byte is 2.57 digits and a comma */
	return files * samples * bytes;
}

double pen__config_parameters(const struct pen_config *c)
{
	const double v = (double)c->model.vocab_size,
		     h = (double)c->model.hidden_size,
		     f = (double)c->model.ffn_hidden_size,
		     kv = (double)(c->model.hidden_size /
				   c->model.num_attention_heads *
				   c->model.num_kv_heads);

	if (c->model.num_layers <= 0)
		return 0;
	return 2 * v * h + h +
	       (double)c->model.num_layers *
		       (2 * h + h * (h + 2 * kv) + h * h + 3 * f * h);
}

static double sum(const struct pen_opt_list *l)
{
	double all = 0;

	for (size_t i = 0; i < l->n; i++)
		all += (double)l->v[i];
	return all;
}

double pen__config_checkpoint_bytes(const struct pen_config *c)
{
	static const double size[] = { 1, 1, 2, 2, 4, 8 };
	const double p = pen__config_parameters(c),
		     ranks = (double)(c->model.tensor * c->model.pipeline);
	const bool transformer = c->model.type &&
				 !strcmp(c->model.type, "transformer");
	double bytes = transformer ? 0 : (double)c->model.size_bytes * ranks;

	if (c->model.layer_parameters.n && c->model.num_layers > 0)
		bytes += sum(&c->model.layer_parameters) *
			 (double)c->model.num_layers;
	else
		bytes += p * size[c->model.model_datatype];
	/* two moments and the parameters once more; explicit ones per rank */
	if (c->model.optimization_groups.n)
		bytes += 3 * sum(&c->model.optimization_groups) * ranks;
	else
		bytes += 3 * p * size[c->model.optimizer_datatype];
	return bytes;
}
