# Writes one C file that holds page.css and page.js of src/report and peers.py
# of src/experiment:
#   cmake -DDIR=src -DOUT=report_assets.c -P Assets.cmake

set(texts "")
foreach(path report/page.css report/page.js experiment/peers.py)
	file(READ ${DIR}/${path} hex HEX)
	get_filename_component(name ${path} NAME)
	string(REPLACE "." "_" name ${name})
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
	string(REPLACE "'\\x0a'," "'\\x0a',\n\t" hex "${hex}")
	string(APPEND texts
		"const char pen__${name}[] = {\n\t${hex}0\n};\n")
endforeach()
file(WRITE ${OUT}.tmp "/* Made of texts under src by the build. */
#include \"experiment/peer.h\"
#include \"report/page.h\"

${texts}")
file(RENAME ${OUT}.tmp ${OUT})
