# Writes one C file that holds page.css and page.js of src/report:
#   cmake -DDIR=src/report -DOUT=report_assets.c -P Assets.cmake

set(texts "")
foreach(name css js)
	file(READ ${DIR}/page.${name} hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
	string(REPLACE "'\\x0a'," "'\\x0a',\n\t" hex "${hex}")
	string(APPEND texts
		"const char pen__page_${name}[] = {\n\t${hex}0\n};\n")
endforeach()
file(WRITE ${OUT}.tmp "/* Made of src/report/page.* by the build. */
#include \"report/page.h\"

${texts}")
file(RENAME ${OUT}.tmp ${OUT})
