# Writes one C file with page.css and page.js of src/report, peers.py and experiments.txt
# of src/experiment, docs/errors.md, and the hash by which a page allows its script:
#   cmake -DDIR=src -DOUT=report_assets.c -P Assets.cmake

set(texts "")
foreach(path report/page.css report/page.js experiment/peers.py
		experiment/experiments.txt ../docs/errors.md)
	file(READ ${DIR}/${path} hex HEX)
	get_filename_component(name ${path} NAME)
	string(REPLACE "." "_" name ${name})
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
	string(REPLACE "'\\x0a'," "'\\x0a',\n\t" hex "${hex}")
	string(APPEND texts
		"const char pen__${name}[] = {\n\t${hex}0\n};\n")
endforeach()

# SHA-256 in base64, as a Content-Security-Policy has it: eleven groups of
# three bytes, of which the last lacks one.
set(alphabet
	ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
file(SHA256 ${DIR}/report/page.js hex)
set(hash "")
foreach(at RANGE 0 60 6)
	string(SUBSTRING "${hex}00" ${at} 6 group)
	foreach(shift 18 12 6 0)
		math(EXPR digit "(0x${group} >> ${shift}) & 63")
		string(SUBSTRING ${alphabet} ${digit} 1 digit)
		string(APPEND hash ${digit})
	endforeach()
endforeach()
string(REGEX REPLACE ".$" "=" hash ${hash})
string(APPEND texts "const char pen__page_js_hash[] = \"sha256-${hash}\";\n")

file(WRITE ${OUT}.tmp "/* Made of texts under src by the build. */
#include \"experiment/peers.h\"
#include \"report/page.h\"

extern const char pen__errors_md[];

${texts}")
file(RENAME ${OUT}.tmp ${OUT})
