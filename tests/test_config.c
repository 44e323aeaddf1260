/* Settings: old and new names, values, arguments, suggestions, checks. */
#include "config.h"

static const struct {
	const char *old, *now, *value, *becomes;
} aliases[] = {
	{ "model", "model.name", "x", "x" },
	{ "logdir", "output.folder", "x", "x" },
	{ "checkpoint.model_size", "model.model_size_bytes", "5", "5" },
	{ "workflow.evaluate", "workflow.evaluation", "True", "true" },
	{ "train.do_eval", "workflow.evaluation", "yes", "true" },
	{ "checkpoint.do_checkpoint", "workflow.checkpoint", "on", "true" },
	{ "train.n_epochs", "train.epochs", "7", "7" },
	{ "train.eval_time", "evaluation.eval_time", "0.5", "0.5" },
	{ "train.eval_after_epoch", "evaluation.eval_after_epoch", "3", "3" },
	{ "checkpoint.output_folder", "checkpoint.checkpoint_folder", "x",
	  "x" },
	{ "checkpoint.checkpoing_after_epoch",
	  "checkpoint.checkpoint_after_epoch", "4", "4" },
	{ "dataset.batch_size", "reader.batch_size", "6", "6" },
	{ "dataset.batch_size_eval", "reader.batch_size_eval", "6", "6" },
	{ "dataset.data_dir", "dataset.data_folder", "x", "x" },
	{ "dataset.num_files_val", "dataset.num_files_eval", "9", "9" },
	{ "dataset.record_length", "dataset.record_length_bytes", "100",
	  "100" },
	{ "dataset.record_length_stdev", "dataset.record_length_bytes_stdev",
	  "100", "100" },
	{ "dataset.record_length_resize", "dataset.record_length_bytes_resize",
	  "100", "100" },
	{ "dataset.chunking", "dataset.enable_chunking", "True", "true" },
	{ "data_loader.read_shuffle", "reader.file_shuffle", "seed", "seed" },
	{ "data_loader.memory_shuffle", "reader.sample_shuffle", "random",
	  "random" },
	{ "data_loader.read_threads", "reader.read_threads", "3", "3" },
	{ "data_loader.computation_threads", "reader.computation_threads", "3",
	  "3" },
	{ "data_loader.prefetch_size", "reader.prefetch_size", "3", "3" },
	{ "data_loader.shuffle_size", "reader.shuffle_size", "3", "3" },
	{ "data_loader.read_type", "reader.read_type", "MEMORY", "memory" },
	{ "data_loader.file_access", "reader.file_access", "shared", "shared" },
	{ "data_loader.transfer_size", "reader.transfer_size", "3", "3" },
	{ "data_loader.data_loader", "reader.data_loader", "dali", "dali" },
	{ "data_reader.batch_size", "reader.batch_size", "3", "3" },
};

static void old_names(void)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		char arg[160], want[200];
		struct made m;

		snprintf(arg, sizeof(arg), "++workload.%s=%s", aliases[i].old,
			 aliases[i].value);
		gives(NULL, arg, aliases[i].now, aliases[i].becomes);
		/* also queried by the old name */
		gives(NULL, arg, aliases[i].old, aliases[i].becomes);
		make(&m, NULL, arg);
		snprintf(want, sizeof(want), "%s is the old name of %s\n",
			 aliases[i].old, aliases[i].now);
		if (strstr(aliases[i].old, ".chunking"))
			snprintf(want + strlen(want),
				 sizeof(want) - strlen(want),
				 "%s has no effect: use "
				 "dataset.hdf5.chunk_dims\n",
				 aliases[i].now);
		if (strncmp(aliases[i].old, "data_", 5) ||
		    strstr(aliases[i].old, "_shuffle"))
			CHECK_STR(notes(&m), want);
		else
			CHECK(strstr(notes(&m), "is the old name of reader\n"));
		unmake(&m);
	}
}

static void old_and_new(void)
{
	static const char both[] = "dataset:\n  record_length_bytes: 6400\n"
				   "  record_length: 100\n";
	struct made m;

	gives(both, NULL, "dataset.record_length_bytes", "6400");
	make(&m, both, NULL);
	CHECK(strstr(notes(&m), "set under two names; the one at f.yaml:2:3"));
	unmake(&m);
	gives("dataset:\n  record_length: 100\n  record_length_bytes: 6400\n",
	      NULL, "dataset.record_length_bytes", "6400");
	gives("reader: {batch_size: 1}\ndata_reader: {batch_size: 2}\n", NULL,
	      "reader.batch_size", "2");
	gives("data_reader: {batch_size: 2}\nreader: {batch_size: 1}\n", NULL,
	      "reader.batch_size", "2");
	gives("dataset: {batch_size: 2}\nreader: {batch_size: 1}\n", NULL,
	      "reader.batch_size", "1");
	/* duplicates in different sources are allowed */
	gives(both, "dataset.record_length=50", "dataset.record_length_bytes",
	      "50");
	/* one note per name, not per use */
	make(&m, NULL, "dataset.record_length=5\ndataset.record_length=6");
	CHECK_STR(notes(&m), "dataset.record_length is the old name of "
			     "dataset.record_length_bytes\n");
	unmake(&m);
	/* DLIO never had this key */
	make(&m, NULL, "model.model_size=5\nmodel.model_size=6");
	CHECK_EQ(m.c.model.size_bytes, 6);
	CHECK_STR(notes(&m), "model.model_size is read as "
			     "model.model_size_bytes; DLIO ignores it and "
			     "writes 10240 bytes\n");
	unmake(&m);
	gives("model: bert\n", NULL, "model.name", "bert");
	gives("model:\n", NULL, "model.name", "default");
	gives("workflow: {profiling: iostat}\n", NULL, "workflow.profiling",
	      "true");
	gives("workflow: {profiling: none}\n", NULL, "profiling.profiler",
	      "none");
	gives("data_loader: {prefetch: False}\n", NULL, "reader.prefetch_size",
	      "0");
	gives("data_loader: {prefetch: True}\n", NULL, "reader.prefetch_size",
	      "2");
	gives("train: {eval_time: {mean: 3}}\n", NULL, "evaluation.eval_time",
	      "3");
}

static void values(void)
{
	gives("train: {epochs: 1_000}\n", NULL, "train.epochs", "1000");
	gives("train: {epochs: 0x10}\n", NULL, "train.epochs", "16");
	gives("train: {epochs: 0o17}\n", NULL, "train.epochs", "15");
	gives("train: {epochs: 017}\n", NULL, "train.epochs", "15");
	gives("train: {epochs: 1e3}\n", NULL, "train.epochs", "1000");
	gives("train: {total_training_steps: 1e3}\n", NULL,
	      "train.total_training_steps", "1000");
	gives("train: {total_training_steps: 8.0}\n", NULL,
	      "train.total_training_steps", "8");
	gives("train: {epochs: '5'}\n", NULL, "train.epochs", "5");
	gives("train: {epochs: ~}\n", NULL, "train.epochs", "1");
	gives("workflow: {train: False}\n", NULL, "workflow.train", "false");
	gives("workflow: {train: off}\n", NULL, "workflow.train", "false");
	gives("reader: {file_shuffle: off}\n", NULL, "reader.file_shuffle",
	      "off");
	gives("reader: {file_shuffle: False}\n", NULL, "reader.file_shuffle",
	      "off");
	gives("dataset: {format: JPG}\n", NULL, "dataset.format", "jpeg");
	gives("dataset: {format: jepg}\n", NULL, "dataset.format", "jpeg");
	gives("dataset: {record_length_bytes: 114660.07}\n", NULL,
	      "dataset.record_length_bytes", "114660.07");
	gives("dataset: {record_length_bytes: 64KiB}\n", NULL,
	      "dataset.record_length_bytes", "65536");
	gives("dataset: {record_dims: [1_0, 0x10, 3]}\n", NULL,
	      "dataset.record_dims", "[10, 16, 3]");
	gives("dataset:\n  record_dims:\n    - 4\n    - 5\n", NULL,
	      "dataset.record_dims", "[4, 5]");
	gives("dataset: {record_element_type: '<f4'}\n", NULL,
	      "dataset.record_element_type", "float32");
	gives("profiling: {iostat_devices: [sda, sdb]}\n", NULL,
	      "profiling.iostat_devices", "sda, sdb");
	gives("profiling: {iostat_devices: sda}\n", NULL,
	      "profiling.iostat_devices", "sda");
	gives("dataset: {data_folder: a/b//}\n", NULL, "dataset.data_folder",
	      "a/b");
	gives("storage: {storage_type: direct_fs}\n", NULL, "reader.odirect",
	      "true");
	gives("framework: pytorch\n", NULL, "reader.data_loader", "pytorch");
	gives("reader: {data_loader: pytorch}\n", NULL, "framework", "pytorch");
	gives("metric: {au: 0.85}\n", NULL, "metric.au", "0.85");
	gives("metric: {au: 85}\n", NULL, "metric.au", "0.85");
	gives("train: {<<: {epochs: 3, seed: 1}, seed: 2}\n", NULL,
	      "train.epochs", "3");
	gives("train: &t {epochs: 3}\nevaluation: {eval_time: 1}\n", NULL,
	      "train.epochs", "3");
	gives("storage: {storage_options: {endpoint_url: 'http://h:9'}}\n",
	      NULL, "storage.storage_options.endpoint_url", "http://h:9");
	gives("dataset: {parquet: {columns: [{name: a, dtype: f4}]}}\n", NULL,
	      "dataset.parquet.columns", "[{name: a, dtype: f4}]");
}

static void times(void)
{
	const char *const key = "train.computation_time";

	gives("train: {computation_time: 0.5}\n", NULL, key, "0.5");
	gives("train: {computation_time: {mean: 0.5, stdev: 0.1}}\n", NULL, key,
	      "{type: normal, mean: 0.5, stdev: 0.1}");
	gives("train: {computation_time: 0.5, computation_time_stdev: 0.1}\n",
	      NULL, key, "{type: normal, mean: 0.5, stdev: 0.1}");
	gives("train: {computation_time_stdev: 0.1, computation_time: 0.5}\n",
	      NULL, key, "{type: normal, mean: 0.5, stdev: 0.1}");
	gives("train: {computation_time: 0.5}\n",
	      "train.computation_time_stdev=0.1", key,
	      "{type: normal, mean: 0.5, stdev: 0.1}");
	gives("train: {computation_time: {mean: 0.5, stdev: 0.1}}\n",
	      "train.computation_time=2", key, "2");
	gives("train: {computation_time: 0.5}\n",
	      "++workload.train.computation_time.type=uniform\n"
	      "++workload.train.computation_time.min=1.0\n"
	      "++workload.train.computation_time.max=2.0",
	      key, "{type: uniform, min: 1, max: 2}");
	gives(NULL, "train.computation_time={type:gamma,shape:1.5,scale:2}",
	      key, "{type: gamma, shape: 1.5, scale: 2}");
	gives(NULL, "train.computation_time={type: exponential, scale: 2}", key,
	      "{type: exponential, scale: 2}");
	gives(NULL, "train.computation_time={type: poisson, lam: 3}", key,
	      "{type: poisson, lam: 3}");
	fails("train: {computation_time: {type: unifrom}}\n", NULL,
	      "f.yaml:1:28", "did you mean 'uniform'?");
	fails("train: {computation_time: {mean: 1, stdev: -1}}\n", NULL,
	      "f.yaml:1:37", "is out of range");
	fails("train: {computation_time: fast}\n", NULL, "f.yaml:1:9",
	      "is not a number");
	fails("train: {computation_time: [1, 2]}\n", NULL, "f.yaml:1:9",
	      "is a list");
	fails("train: {computation_time: {men: 1}}\n", NULL, "f.yaml:1:28",
	      "did you mean train.computation_time.mean?");
	fails(NULL, "train.computation_time={type: uniform, min: 2, max: 1}",
	      key, "below min");
	fails(NULL, "train.computation_time={type: gamma, shape: 2}", key,
	      "gamma needs");
	fails(NULL, "train.computation_time={type: exponential}", key,
	      "exponential needs");
}

static void arguments(void)
{
	struct made m;

	gives(NULL, "++workload.train.epochs=3", "train.epochs", "3");
	gives(NULL, "+workload.train.epochs=3", "train.epochs", "3");
	gives(NULL, "workload.train.epochs=3", "train.epochs", "3");
	gives(NULL, "train.epochs=3", "workload.train.epochs", "3");
	gives(NULL, "train.epochs=3\ntrain.epochs=4", "train.epochs", "4");
	gives("train: {epochs: 9}\n", "~workload.train.epochs", "train.epochs",
	      "1");
	gives(NULL, "model.optimization_groups=[1024, 128]",
	      "model.optimization_groups", "[1024, 128]");
	gives(NULL, "model.optimization_groups=[1024,128]",
	      "model.optimization_groups", "[1024, 128]");
	gives(NULL, "model.optimization_groups=[]", "model.optimization_groups",
	      "[]");
	gives(NULL, "model.name='a b'", "model.name", "a b");
	gives(NULL, "model.name=\"it's\"", "model.name", "it's");
	gives(NULL, "model.name=a: b # c", "model.name", "a: b # c");
	gives("output: {folder: x}\n", "output.folder=", "output.folder", "");
	gives("output: {folder: x}\n", "output.folder=null", "output.folder",
	      "");
	gives(NULL, "hydra.run.dir=/a/b", "hydra.run.dir", "/a/b");
	gives(NULL, "++hydra.output_subdir=dlio_config", "hydra.output_subdir",
	      "dlio_config");
	gives(NULL, "loader.store=mmap\nloader.store.x=1", "loader.store.x",
	      "1");
	gives(NULL, "storage.storage_options={region:us,url:http://a:1/b}",
	      "storage.storage_options.url", "http://a:1/b");
	gives(NULL, "checkpoint.ksm={}\ncheckpoint.randomize_tensor=False",
	      "checkpoint.ksm", "true");
	gives(NULL,
	      "checkpoint.ksm.await_time=9\n"
	      "checkpoint.randomize_tensor=False",
	      "checkpoint.ksm", "true");
	make(&m, NULL, "hydra.job.chdir=True\nhydra.sweep.dir=x");
	CHECK_EQ(m.rc, 0);
	CHECK(strstr(notes(&m), "hydra.job.chdir belongs to Hydra"));
	unmake(&m);
	make(&m, NULL, "workload=unet3d_h100\n++workload.train.epochs=2");
	CHECK_STR(m.s.workload, "unet3d_h100");
	CHECK_STR(m.s.overrides.p, "workload=unet3d_h100\n"
				   "++workload.train.epochs=2\n");
	unmake(&m);
	fails(NULL, "train.epochs", "train.epochs", "write key=value");
	fails(NULL, "=3", "=3", "write key=value");
	fails(NULL, "workload=", "workload", "the name is empty");
	fails(NULL, "train.epochs=", "train.epochs", "is not a count");
	fails(NULL, "dataset.record_dims=[1", "dataset.record_dims:1:1",
	      "not closed");
	fails(NULL, "dataset.record_dims=[1,a]", "dataset.record_dims",
	      "list of integers");
	fails(NULL, "dataset.format={a: 1}", "dataset.format", "a map where");
	fails(NULL, "dataset=5", "dataset", "a section;");
}

static void interpolation(void)
{
	struct made m;

	gives("model: {name: bert}\n",
	      "hydra.run.dir=out/${workload.model.name}/x", "hydra.run.dir",
	      "out/bert/x");
	gives(NULL, "output.folder=${model.name}_${train.epochs}",
	      "output.folder", "default_1");
	gives(NULL, "model.name=${now:100%%}", "model.name", "100%");
	make(&m, "model: {name: bert}\n", "output.folder=r/${now:%Y-%m}");
	CHECK_EQ(m.rc, 0);
	CHECK_EQ(strlen(m.c.output.folder), 9);
	CHECK(!strncmp(m.c.run_dir, "./hydra_log/bert/20", 19));
	CHECK_EQ(strlen(m.c.run_dir), strlen("./hydra_log/bert/"
					     "2026-01-01-00-00-00"));
	unmake(&m);
	fails("output: {folder: '${oc.env:HOME}'}\n", NULL, "f.yaml:1:10",
	      "cannot resolve ${oc.env:HOME}");
	fails(NULL, "output.folder=${output.folder}", "output.folder",
	      "refers to itself");
	fails(NULL, "output.folder=${now:%Q}", "output.folder",
	      "not a valid time format");
	fails(NULL, "output.folder=${now", "output.folder",
	      "without a closing");
	fails(NULL, "train.epochs=${workload.x}", "train.epochs",
	      "text values only");
}

static void suggestions(void)
{
	static const struct {
		const char *key, *means;
	} slips[] = {
		{ "dataset.num_file_train", "dataset.num_files_train" },
		{ "num_file_train", "dataset.num_files_train" },
		{ "batch_size", "reader.batch_size" },
		{ "train.batch_size", "reader.batch_size" },
		{ "datset.format", "dataset.format" },
		{ "reader.format", "dataset.format" },
		{ "format", "dataset.format" },
		{ "record_length", "dataset.record_length_bytes" },
		{ "reader.read_thread", "reader.read_threads" },
		{ "train.epoch", "train.epochs" },
		{ "epohcs", "train.epochs" },
		{ "model.parallelism.tensr", "model.parallelism.tensor" },
		{ "model.tensor", "model.parallelism.tensor" },
		{ "model.hidden_size", "model.transformer.hidden_size" },
		{ "checkpoint.fsnc", "checkpoint.fsync" },
		{ "computation_time", "train.computation_time" },
		{ "metrics.au", "metric.au" },
		{ "acelerators", "accelerators" },
	};
	char arg[160], want[160];
	struct made m;

	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		snprintf(arg, sizeof(arg), "%s=1", slips[i].key);
		snprintf(want, sizeof(want), "did you mean %s?",
			 slips[i].means);
		fails(NULL, arg, slips[i].key, want);
		make_as(&m, NULL, arg, true);
		CHECK_EQ(m.rc, 0);
		snprintf(want, sizeof(want),
			 "unknown key %s is ignored; did you mean %s?\n",
			 slips[i].key, slips[i].means);
		CHECK_STR(notes(&m), want);
		unmake(&m);
	}
	fails(NULL, "xyzzy=1", "xyzzy", "unknown key; see");
	fails(NULL, "model.fle=1", "model.fle", "unknown key; see");
	fails("datset:\n  format: npz\n", NULL, "f.yaml:1:1",
	      "did you mean dataset?");
	make_as(&m, "foo: {bar: [1, {a: 2}]}\n", NULL, true);
	CHECK_EQ(m.rc, 0);
	CHECK_STR(notes(&m), "unknown key foo is ignored\n");
	unmake(&m);
	make_as(&m, "train: {epochs: x}\n", NULL, true);
	CHECK_EQ(m.rc, PEN_EINVAL);
	unmake(&m);
	fails(NULL, "loader.stoer=x", "loader.stoer", "did you mean 'store'?");
}

int main(void)
{
	old_names();
	old_and_new();
	values();
	times();
	arguments();
	interpolation();
	suggestions();
	return test_end();
}
