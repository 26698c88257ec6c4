// The programs weft and mount.weft in one file.
#include "cli/program.h"
#include "fuse/program.h"
#include "fuse/single/dispatch.h"

int main(int argc, char** argv) {
  const weft::Call call = weft::call_of({argv, static_cast<std::size_t>(argc)});
  return call.part == weft::Part::mount ? weft::mount_main(call.arguments) : weft::weft_main(call.arguments);
}
