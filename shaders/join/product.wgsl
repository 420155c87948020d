// The product of two rows, column by column.

fn load(opened: Opened, k: u32) -> mat4x4<f32> {
    let one = settled16(load16(opened.first, k));
    let other = settled16(load16(opened.second, k));
    return settled16(mat4x4<f32>(one[0] * other[0], one[1] * other[1], one[2] * other[2], one[3] * other[3]));
}
