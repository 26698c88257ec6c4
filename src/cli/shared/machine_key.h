// The key of a cache of compiled code: what must be equal on two machines for one to use what the other has compiled.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Returns the facts of a processor from the text of /proc/cpuinfo: its model, and those flags that compilers use. ""
// if the text has none.
std::string processor_facts(std::string_view cpuinfo);
// Returns the version of the NVIDIA driver from the text of /proc/driver/nvidia/version; "" if it has none.
std::string driver_version(std::string_view text);

// Returns one line about this machine: the processor; the NVIDIA GPUs and their driver, if there are any; and the
// versions of torch, triton and vllm that are installed for the first python3 along `path` ($PATH). Reads below `root`
// ("" on a live machine). It runs no program.
std::string machine_key(const std::string& root, const std::string& path);

// Returns the last component of the name under which versions with this key are published: "key-" and 16 hexadecimal
// digits of the SHA-256 of the key.
std::string key_component(std::string_view key);

}  // namespace weft
