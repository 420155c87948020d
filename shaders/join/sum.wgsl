// The sum of the rows, in order.

fn load(opened: Opened, k: u32) -> mat4x4<f32> {
    var sum = settled16(settled16(load16(opened.first, k)) + settled16(load16(opened.second, k)));
    if ROWS > 2u {
        sum = settled16(sum + settled16(load16(opened.third, k)));
    }
    if ROWS > 3u {
        sum = settled16(sum + settled16(load16(opened.fourth, k)));
    }
    return sum;
}
