#include "format/containers.h"

namespace weft {

const ContainerFormat* container_format(std::string_view file_name, std::span<const std::byte> head) {
  for (const ContainerFormat* format : {&tar_container(), &lmdb_container()})
    if (format->claims(file_name, head)) return format;
  return nullptr;
}

}  // namespace weft
