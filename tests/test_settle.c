/* Validation of combinations of settings, and printed configurations. */
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

/* Invalid YAML: the text, the location and part of the message. */
static const struct {
	const char *yaml, *where, *what;
} wrong[] = {
	{ "dataset: [1, 2]\n", "f.yaml:1:1", "a section;" },
	{ "dataset: npz\n", "f.yaml:1:1", "a section;" },
	{ "dataset:\n  - format: npz\n", "f.yaml:1:1", "a section;" },
	{ "- a\n", "f.yaml:1:1", "not a workload" },
	{ "npz\n", "f.yaml:1:1", "not a workload" },
	{ "workload: unet3d_h100\n", "f.yaml:1:1", "workload=NAME" },
	{ "dataset:\n  format: [npz]\n", "f.yaml:2:3",
	  "is a list; specify a single value" },
	{ "dataset:\n  format: {npz: 1}\n", "f.yaml:2:3",
	  "a map where a single value" },
	{ "dataset:\n  format: tfrecrod\n", "f.yaml:2:3",
	  "did you mean 'tfrecord'?" },
	{ "dataset:\n  format: excel\n", "f.yaml:2:3", "choose from: tfr" },
	{ "dataset: {format: npz}\ndataset.format: npy\n", "f.yaml:2:1",
	  "set twice, first at f.yaml:1:11" },
	{ "train: {epochs: many}\n", "f.yaml:1:9", "'many' is not a count" },
	{ "train: {epochs: -1}\n", "f.yaml:1:9", "is not a count" },
	{ "train: {epochs: 1e30}\n", "f.yaml:1:9", "is not a count" },
	{ "train: {epochs: 1e12}\n", "f.yaml:1:9", "is out of range" },
	{ "train: {epochs: .inf}\n", "f.yaml:1:9", "is not a count" },
	{ "workflow: {train: maybe}\n", "f.yaml:1:12", "is not a boolean" },
	{ "reader: {batch_size: 0}\n", "f.yaml:1:10", "is out of range" },
	{ "reader: {batch_size_eval: 0}\n", "f.yaml:1:10", "is out of range" },
	{ "metric: {au: 101}\n", "f.yaml:1:10", "is out of range" },
	{ "metric: {au: -0.1}\n", "f.yaml:1:10", "is out of range" },
	{ "dataset: {format: jpeg, record_dims: [2, 3, 4]}\n", "f.yaml:1:25",
	  "jpeg format does not support more than 2 dimensions, but got 3 "
	  "dimensions." },
	{ "dataset: {format: png, record_dims: [2, 3, 4, 5]}\n", "f.yaml:1:24",
	  "png format does not support more than 2 dimensions, but got 4 "
	  "dimensions." },
	{ "dataset: {record_dims: [2], record_length_bytes_stdev: 1}\n",
	  "f.yaml:1:29", "cannot be combined with record_dims" },
	{ "dataset: {record_dims: [2, 0]}\n", "f.yaml:1:11",
	  "a dimension is 0" },
	{ "dataset: {record_dims: [4294967296, 4294967296]}\n", "f.yaml:1:11",
	  "too large" },
	{ "dataset: {record_dims: [-1]}\n", "f.yaml:1:11",
	  "is not a list of integers" },
	{ "dataset: {record_element_type: string}\n", "f.yaml:1:11",
	  "'string' is not a NumPy type" },
	{ "dataset: {format: hdf5, record_dims: [4, 2],"
	  " hdf5: {num_dset_per_record: 3}}\n",
	  "f.yaml:1:53", "does not divide record_dims[0] = 4" },
	{ "dataset: {format: hdf5, hdf5: {chunk_dims: [1, 2]}}\n",
	  "f.yaml:1:32", "specify 3" },
	{ "dataset: {format: hdf5, record_dims: [4, 5, 6],"
	  " hdf5: {max_shape: [1, 2]}}\n",
	  "f.yaml:1:56", "a record has 3 dimensions" },
	{ "dataset: {format: csv, compression: gzip}\n", "f.yaml:1:24",
	  "format hdf5 (gzip, lzf) or npz (zip)" },
	{ "dataset: {format: hdf5, compression: zip}\n", "f.yaml:1:25",
	  "use gzip, lzf or none" },
	{ "dataset: {format: npz, compression: gzip}\n", "f.yaml:1:24",
	  "use zip or none" },
	{ "dataset: {format: parquet}\n", "f.yaml:1:11", "not supported yet" },
	{ "dataset: {data_folder: 's3://x'}\n", "f.yaml:1:11",
	  "(s3://) are not supported in this version" },
	{ "dataset: {data_folder: ''}\n", "f.yaml:1:11", "must not be empty" },
	{ "dataset: {num_files_train: 4G, num_samples_per_file: 10M}\n",
	  "f.yaml:1:32", "exceeds 2^53" },
	{ "dataset: {num_files_train: 1M, record_length_bytes: 1e14}\n",
	  "f.yaml:1:32", "exceeds 2^62" },
	{ "storage: {storage_type: s3}\n", "f.yaml:1:11",
	  "object stores (s3) are not supported in this" },
	{ "storage: {storage_type: aistore}\n", "f.yaml:1:11",
	  "object stores (aistore) are not" },
	{ "framework: tensorflow\nreader: {data_loader: pytorch}\n",
	  "f.yaml:2:10", "does not match framework=tensorflow" },
	{ "framework: pytorch\nreader: {data_loader: tensorflow}\n",
	  "f.yaml:2:10", "does not match framework=pytorch" },
	{ "reader: {reader_classname: a.B}\n", "f.yaml:1:10",
	  "Python plug-ins cannot run here" },
	{ "reader: {data_loader_classname: a.B}\n", "f.yaml:1:10",
	  "Python plug-ins cannot run here" },
	{ "checkpoint: {checkpoint_mechanism_classname: a.B}\n", "f.yaml:1:14",
	  "Python plug-ins cannot run here" },
	{ "reader: {data_loader: custom}\n", "f.yaml:1:10",
	  "Python plug-ins cannot run here" },
	{ "model: {parallelism: {zero_stage: 4}}\n", "f.yaml:1:23",
	  "is out of range" },
	{ "model: {parallelism: {zero_stage: 3, pipeline: 2}}\n", "f.yaml:1:23",
	  "pipeline > 1" },
	{ "model: {parallelism: {data: 4}}\n", "f.yaml:1:23",
	  "checkpoint.mode=subset" },
	{ "checkpoint: {mode: subset}\n", "f.yaml:1:14",
	  "needs model.parallelism.data" },
	{ "model: {num_layers: 2, parallelism: {pipeline: 4}}\n", "f.yaml:1:9",
	  "below model.parallelism.pipeline" },
	{ "model: {optimization_groups: [281474976710656, 1]}\n", "f.yaml:1:9",
	  "exceeds 2^48" },
	{ "checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 3}\n",
	  "f.yaml:1:40", "exceeds num_checkpoints_write = 2" },
	{ "checkpoint: {ksm: {await_time: 3}}\n", "checkpoint.ksm",
	  "randomize_tensor=false" },
	{ "checkpoint: {block_size: 5000}\n", "f.yaml:1:14",
	  "not a multiple of 4096" },
	{ "checkpoint: {block_size: 1GiB}\n", "f.yaml:1:14",
	  "exceeds checkpoint.memory" },
};

static void refused(void)
{
	char longest[400];
	struct made m;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		fails(wrong[i].yaml, NULL, wrong[i].where, wrong[i].what);
	memset(longest, 'a', sizeof(longest));
	snprintf(longest + 390, 10, "=1");
	make(&m, NULL, longest);
	CHECK_EQ(m.rc, PEN_EINVAL);
	CHECK(strstr(m.e.msg, "not a setting"));
	unmake(&m);
}

static void accepted(void)
{
	static const char *const fine[] = {
		"dataset: {format: hdf5, compression: gzip}\n",
		"dataset: {format: hdf5, compression: lzf}\n",
		"dataset: {format: npz, compression: zip}\n",
		"dataset: {format: csv, compression: none}\n",
		"dataset: {format: tfrecord}\nreader: {data_loader: pytorch}\n",
		"framework: pytorch\nreader: {data_loader: dali}\n",
		"framework: tensorflow\nreader: {data_loader: native_dali}\n",
		"storage: {storage_type: parallel_fs}\n",
		"dataset: {format: hdf5, record_dims: [3, 4, 5],"
		" hdf5: {num_dset_per_record: 3, chunk_dims: [1, 4, 5]}}\n",
		"model: {parallelism: {data: 4}}\ncheckpoint: {mode: subset}\n",
		"reader: {reader_classname: null, multiprocessing_context:"
		" fork, data_loader_sampler: none, write_threads: 1}\n",
		"workload: {train: {epochs: 2}}\n",
		"workload:\n  dataset:\n    format: npz\n",
		"dataset:\nreader:\n",
		"reader: {read_type: memory}\nloader: {store: ram}\n",
		"reader: {odirect: true}\nloader: {store: posix}\n",
	};
	struct made m;

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		make(&m, fine[i], NULL);
		if (!CHECK(!m.rc))
			fprintf(stderr, "  %s: %s\n", m.e.where, m.e.msg);
		CHECK_STR(notes(&m), "");
		unmake(&m);
	}
	make(&m, "dataset: {format: png, record_element_type: float32}\n",
	     NULL);
	CHECK_EQ(m.rc, 0);
	CHECK_STR(m.c.dataset.record_element_type, "uint8");
	CHECK(strstr(notes(&m), "is ignored: png files contain uint8"));
	unmake(&m);
	make_as(&m, "reader: {reader_classname: a.B, data_loader: custom}\n",
		NULL, true);
	CHECK_EQ(m.rc, 0);
	CHECK(strstr(notes(&m), "reader.reader_classname is ignored"));
	CHECK(strstr(notes(&m), "reader.data_loader is ignored"));
	unmake(&m);
}

/* Keys of DLIO without effect cause a note. */
static void no_effect(void)
{
	static const char *const all[][2] = {
		{ "dataset: {parquet: {row_group_size: 5}}\n",
		  "dataset.parquet.row_group_size" },
		{ "storage: {storage_library: minio}\n",
		  "storage.storage_library" },
		{ "storage: {storage_options: {uri_scheme: s3}}\n",
		  "storage.storage_options.uri_scheme" },
		{ "reader: {multiprocessing_context: spawn}\n",
		  "reader.multiprocessing_context" },
		{ "reader: {write_threads: 4}\n", "reader.write_threads" },
		{ "reader: {computation_threads: 4}\n",
		  "reader.computation_threads" },
		{ "reader: {shuffle_size: 4}\n", "reader.shuffle_size" },
		{ "workflow: {debug: True}\n", "workflow.debug" },
		{ "dataset: {format: npz, hdf5: {chunk_dims: [1, 2, 3]}}\n",
		  "dataset.hdf5.chunk_dims" },
		{ "dataset: {generation_buffer_size: 5}\n",
		  "dataset.generation_buffer_size" },
		{ "checkpoint: {type: all_ranks}\n", "checkpoint.type" },
		{ "checkpoint: {num_checkpoints_write: 3}\n",
		  "checkpoint.num_checkpoints_write" },
		{ "checkpoint: {randomize_tensor: false, ksm: true}\n",
		  "checkpoint.ksm" },
		{ "reader: {data_loader: synthetic, odirect: true}\n",
		  "reader.odirect" },
		{ "profiling: {profiler: darshan}\n", "profiling.profiler" },
		{ "profiling: {iostat_devices: [sda]}\n",
		  "profiling.iostat_devices" },
	};
	struct made m;
	char want[160];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		make(&m, all[i][0], NULL);
		CHECK(!m.rc);
		snprintf(want, sizeof(want), "%s has no effect: ", all[i][1]);
		if (!CHECK(!strncmp(notes(&m), want, strlen(want))))
			fprintf(stderr, "  %s: %s\n", all[i][1], notes(&m));
		unmake(&m);
	}
	/* as in a built-in workload */
	memset(&m, 0, sizeof(m));
	pen__settings_init(&m.s);
	m.rc = pen__settings_load(&m.s, "resnet50_a100", &m.e);
	if (!m.rc)
		m.rc = pen__config_settle(&m.c, &m.s, &m.e);
	CHECK_EQ(m.rc, 0);
	CHECK_EQ(m.c.reader.computation_threads, 8);
	CHECK_STR(notes(&m), "");
	unmake(&m);
}

static void exclude(void)
{
	fails(NULL, "reader.odirect=true\nloader.store=mmap", "loader.store",
	      "reader.odirect=true");
	fails(NULL, "storage.storage_type=direct_fs\nloader.store=ram",
	      "loader.store", "reader.odirect=true");
	fails(NULL, "reader.page_cache=drop\nloader.store=mmap", "loader.store",
	      "reader.page_cache");
	fails(NULL, "reader.dont_use_mmap=true\nloader.store=mmap",
	      "loader.store", "reader.dont_use_mmap");
	fails(NULL, "reader.read_type=memory\nloader.store=posix",
	      "loader.store", "reader.read_type=memory");
	fails(NULL, "reader.read_type=memory\nreader.odirect=true",
	      "reader.odirect", "reader.read_type=memory");
	fails(NULL, "reader.read_type=memory\nreader.page_cache=drop",
	      "reader.page_cache", "reader.read_type=memory");
	fails(NULL, "reader.data_loader=synthetic\nloader.store=posix",
	      "loader.store", "synthetic");
	fails(NULL, "workflow.profiling=true\nprofiling.profiler=darshan",
	      "profiling.profiler", "use iostat");
	fails(NULL, "workflow.profiling=tensorboard", "profiling.profiler",
	      "use iostat");
}

/* All values differ from the defaults, so that they must be read back. */
static const char full[] =
	"framework: pytorch\n"
	"model: {name: 'a #b', type: transformer, num_layers: 4,\n"
	"  layer_parameters: [1, 2], optimization_groups: [5],\n"
	"  parallelism: {tensor: 2, data: 3, zero_stage: 1}}\n"
	"storage: {storage_root: /x, storage_options: {region: 'no', k: 1}}\n"
	"dataset: {format: hdf5, record_dims: [3, 4], record_element_type: "
	"int8,\n"
	"  hdf5: {num_dset_per_record: 3, chunk_dims: [1, 4]},\n"
	"  file_prefix: '01', compression: gzip, compressibility: 0.333,\n"
	"  parquet: {columns: [{name: a}]}}\n"
	"reader: {file_shuffle: 'off', preprocess_time: {type: gamma, shape: "
	"1e-3,\n"
	"  scale: 1.25e-7}, page_cache: drop, batch_size: 3}\n"
	"train: {computation_time: {mean: 0.1, stdev: 0.3}}\n"
	"evaluation: {eval_time: {type: uniform, min: 0.1, max: 1e5}}\n"
	"checkpoint: {mode: subset, randomize_tensor: false, ksm: {await_time: "
	"3}}\n"
	"output: {folder: 'yes', metric: {exclude_end_steps: 2}}\n"
	"profiling: {iostat_devices: [sda, sdb]}\n"
	"metric: {au: 0.1234567890123}\n"
	"accelerators: 4\n"
	"loader: {store: fault, store.read_delay: 1ms, threads: 2}\n"
	"hydra: {run: {dir: /a b/c}, output_subdir: x}\n";

static void printed(const struct made *m, bool origins, struct pen_text *t)
{
	pen__config_print(&m->c, &m->s, origins, t);
	CHECK(!t->failed);
}

/* Reads text back and compares the result. */
static void reads_back(const char *text, const char *want)
{
	struct pen_text t = { 0 };
	struct made m;

	make(&m, text, NULL);
	if (CHECK(!m.rc)) {
		printed(&m, false, &t);
		CHECK(!strcmp(t.p, want));
		CHECK(!strstr(notes(&m), "old name"));
	} else {
		fprintf(stderr, "  %s: %s\n", m.e.where, m.e.msg);
	}
	pen__text_fini(&t);
	unmake(&m);
}

/* The text as rewritten by PyYAML. */
static char *through_pyyaml(const struct pen_text *t)
{
	struct pen_text back = { 0 };
	struct pen_err e = { 0 };
	char buf[4096];
	size_t n;
	FILE *py;

	CHECK_EQ(pen__text_save(t, "settle.yaml", &e), 0);
	py = popen("/usr/bin/python3 -c 'import sys, yaml\n"
		   "yaml.safe_dump(yaml.safe_load(open(\"settle.yaml\")), "
		   "sys.stdout, sort_keys=False)' 2>/dev/null",
		   "r");
	while (py && (n = fread(buf, 1, sizeof(buf), py)) > 0)
		pen__text_put(&back, buf, n);
	if (py)
		pclose(py);
	return back.p; /* NULL: not installed */
}

static void round_trip(const char *yaml)
{
	struct pen_text plain = { 0 }, origins = { 0 };
	struct made m;
	char *back;

	make(&m, yaml, NULL);
	if (!CHECK(!m.rc)) {
		fprintf(stderr, "  %s: %s\n", m.e.where, m.e.msg);
		unmake(&m);
		return;
	}
	printed(&m, false, &plain);
	printed(&m, true, &origins);
	CHECK(strstr(origins.p, "  # f.yaml:1:1\n"));
	CHECK(strstr(origins.p, "  # default\n"));
	unmake(&m);
	reads_back(plain.p, plain.p);
	reads_back(origins.p, plain.p);
	back = through_pyyaml(&plain);
	if (back)
		reads_back(back, plain.p);
	pen__free(back);
	pen__text_fini(&plain);
	pen__text_fini(&origins);
}

static void slurp(const char *path, char *buf, size_t cap)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, cap - 1, f) : 0;

	CHECK(f && n);
	buf[n] = '\0';
	if (f)
		fclose(f);
}

static void hydra_files(void)
{
	static char buf[16384];
	struct made m;

	make(&m, full,
	     "workload=unet3d_h100\n++workload.train.epochs=2\n"
	     "++workload.model.optimization_groups=[1, 2]\n"
	     "hydra.run.dir=r");
	CHECK_EQ(m.rc, 0);
	CHECK_EQ(pen__config_save_hydra(&m.c, &m.s, "settle.d/a/.hydra", &m.e),
		 0);
	slurp("settle.d/a/.hydra/overrides.yaml", buf, sizeof(buf));
	CHECK_STR(buf, "- 'workload=unet3d_h100'\n"
		       "- '++workload.train.epochs=2'\n"
		       "- '++workload.model.optimization_groups=[1, 2]'\n");
	slurp("settle.d/a/.hydra/hydra.yaml", buf, sizeof(buf));
	CHECK(strstr(buf, "  run:\n    dir: r\n"));
	CHECK(strstr(buf, "    - 'hydra.run.dir=r'\n"));
	CHECK(strstr(buf, "      workload: unet3d_h100\n"));
	slurp("settle.d/a/.hydra/config.yaml", buf, sizeof(buf));
	CHECK(strstr(buf, "workload:\n  framework: pytorch\n"));
	CHECK(strstr(buf, "\n    epochs: 2\n"));
	CHECK(strstr(buf, "\n    hdf5:\n      num_dset_per_record: 3\n"));
	CHECK(!strstr(buf, "hydra"));
	unmake(&m);
	make(&m, buf, NULL); /* it is also a valid workload */
	CHECK_EQ(m.rc, 0);
	CHECK_EQ(m.c.train.epochs, 2);
	CHECK_STR(m.c.model.name, "a #b");
	CHECK_EQ(pen__config_save_hydra(&m.c, &m.s, "settle.yaml/x", &m.e),
		 PEN_EIO);
	unmake(&m);
}

/* Python can parse the JSON. */
static void json(void)
{
	struct pen_text j = { 0 };
	struct pen_err e = { 0 };
	struct made m;

	make(&m, full, NULL);
	CHECK_EQ(m.rc, 0);
	pen__json_open(&j, NULL, '{');
	pen__config_json(&m.c, &j);
	pen__json_close(&j, '}');
	CHECK_EQ(pen__text_save(&j, "settle.json", &e), 0);
	CHECK_EQ(
		system("/usr/bin/python3 -c 'import json\n"
		       "c = json.load(open(\"settle.json\"))\n"
		       "assert c[\"dataset\"][\"hdf5\"][\"chunk_dims\"] == [1, "
		       "4]\n"
		       "assert c[\"model\"][\"parallelism\"][\"tensor\"] == 2\n"
		       "assert c[\"train\"][\"computation_time\"][\"stdev\"] "
		       "== 0.3\n"
		       "assert c[\"loader\"][\"store\"] == \"fault\"\n"
		       "assert c[\"accelerators\"] == 4'"),
		0);
	pen__text_fini(&j);
	unmake(&m);
}

static void queries(void)
{
	struct pen_text t = { 0 };
	struct made m;

	make(&m, full, NULL);
	CHECK_EQ(m.rc, 0);
	CHECK_EQ(pen__config_query(&m.c, "dataset", &t, &m.e), PEN_EINVAL);
	CHECK(strstr(m.e.msg, "a section,"));
	CHECK_EQ(pen__config_query(&m.c, "dataset.formt", &t, &m.e),
		 PEN_EINVAL);
	CHECK(strstr(m.e.msg, "did you mean dataset.format?"));
	CHECK_EQ(pen__config_query(&m.c, "loader.x", &t, &m.e), PEN_EINVAL);
	pen__text_fini(&t);
	unmake(&m);
}

static void memory(void)
{
	static const char args[] = "workload=x\ntrain.epochs=3\n"
				   "dataset.record_length=9\nhydra.x=1\n"
				   "output.folder=${model.name}\n"
				   "storage.storage_options={a: [1, 2]}";
	struct made m;
	bool done = false;

	for (uint64_t nth = 1; !done && nth < 10000; nth++) {
		pen__mem_fail_nth(nth, false);
		make(&m, full, args);
		pen__mem_fail_nth(0, false);
		done = !m.rc;
		if (m.rc)
			CHECK_EQ(m.rc, PEN_ENOMEM);
		unmake(&m);
	}
	CHECK(done);
}

int main(void)
{
	refused();
	accepted();
	no_effect();
	exclude();
	round_trip(full);
	round_trip("framework: pytorch\n");
	hydra_files();
	json();
	queries();
	memory();
	return test_end();
}
