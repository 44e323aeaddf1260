# Writes one C file that holds all workloads/*.yaml, sorted by name:
#   cmake -DFILES="a.yaml;b.yaml" -DOUT=workloads.c -P Workloads.cmake

set(texts "")
set(table "")
foreach(file ${FILES})
	get_filename_component(name ${file} NAME_WLE)
	file(READ ${file} hex HEX)
	string(LENGTH "${hex}" n)
	math(EXPR n "${n} / 2")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
	string(REPLACE "'\\x0a'," "'\\x0a',\n\t" hex "${hex}")
	string(APPEND texts
		"static const char text_${name}[] = {\n\t${hex}0\n};\n")
	string(APPEND table "\t{ \"${name}\", text_${name}, ${n} },\n")
endforeach()
file(WRITE ${OUT}.tmp "/* Made of workloads/ by the build. */
#include \"emulate/config.h\"

extern const struct pen_workload pen__workload_table[];

${texts}
const struct pen_workload pen__workload_table[] = {
${table}	{ NULL, NULL, 0 },
};
")
file(RENAME ${OUT}.tmp ${OUT})
